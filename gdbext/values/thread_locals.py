"""Finds names in an expression for which GDB would read another instance of a thread-local variable than the rank's.

Takes an expression as the user types it, where GDB stands; asks GDB for the storage of each name. A program's own
thread-local variables are no such names: views say where each rank's are.
"""

from __future__ import annotations

import re
from os.path import basename as name_of

import gdb

from gdbext.gdb_api.run_commands import DebuggerError, execute
from gdbext.gdb_api.target import path_of
from pieglobalsfind.debugger import expression_names
from pieglobalsfind.target import Target

STORAGE = re.compile(r" is a thread-local variable at offset \S+ in the thread-local storage for `(.*)'")


def why_not_the_ranks(expression: str, target: Target, is_suspended: bool) -> str:
    """Return why GDB has not the rank's instance of a variable such as `errno`, "" if it has all that is named."""
    pieces = expression_names.pieces(expression)
    for name in expression_names.names(pieces) if pieces is not None else ():
        file = file_of_storage(name)
        if file and is_suspended:
            return f"{name} is thread-local: GDB reads the kernel thread's, where this rank does not run"
        if file and is_loaded_again(file, target):
            return f"{name} is thread-local, and each rank has a copy of its library: GDB reads that of the first"
    return ""


def is_loaded_again(file: str, target: Target) -> bool:
    """Whether a library is there several times; `file` is its own path, or that of its debug information.

    By its name alone: the kernel and the dynamic linker may know its folder by different links.
    """
    libraries = {name_of(path_of(objfile.owner or objfile)) for objfile in gdb.objfiles() if path_of(objfile) == file}
    return sum(name_of(mapping.path) in libraries and mapping.offset == 0 for mapping in target.maps()) > 1


def file_of_storage(name: str) -> str:
    """The file in which a name is a variable with one instance for each kernel thread, "" for any other name."""
    if name.startswith("$"):
        return ""
    try:
        match = STORAGE.search(execute(f"info address {name}"))
    except DebuggerError:  # of no such name the evaluation says more
        return ""
    return match[1] if match else ""
