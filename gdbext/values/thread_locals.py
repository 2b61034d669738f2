"""Finds names in an expression for which GDB would read the kernel thread's instance instead of a suspended rank's.

Takes an expression as the user types it, where GDB stands; asks GDB for the storage of each name. A program's own
thread-local variables are no such names: views say where each rank's are.
"""

from __future__ import annotations

from gdbext.gdb_api.run_commands import DebuggerError, execute
from pieglobalsfind.debugger import expression_names

IS_THREAD_LOCAL = " is a thread-local variable at offset "


def thread_local_name(expression: str) -> str:
    """Return the first name of a thread-local variable such as `errno`, "" if there is none."""
    pieces = expression_names.pieces(expression)
    names = expression_names.names(pieces) if pieces is not None else ()
    return next((name for name in names if is_thread_local(name)), "")


def is_thread_local(name: str) -> bool:
    """Whether a name means a variable of which GDB knows one instance for each kernel thread."""
    if name.startswith("$"):
        return False
    try:
        return IS_THREAD_LOCAL in execute(f"info address {name}")
    except DebuggerError:  # of no such name the evaluation says more
        return False
