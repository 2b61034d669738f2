"""GDB runs `hook-step` before `step`, whose error keeps `step` from running, and `hookpost-step` behind it.

Takes names of hooks and commands of ours. Hooks of the user's own are left alone.
"""

from __future__ import annotations

from typing import Callable

import gdb

from gdbext.quiet import DebuggerError, execute


class Called(gdb.Command):
    """A command that hooks call, and no user."""

    def __init__(self, name: str, act: Callable[[], object]) -> None:
        super().__init__(name, gdb.COMMAND_MAINTENANCE)
        self._act = act

    def invoke(self, argument: str, from_tty: bool) -> None:
        self._act()


def define(hooks: dict[str, str]) -> None:
    """Have each hook run a command of ours, unless the user has one of these hooks already."""
    if not any(map(is_defined, hooks)):
        for hook, command in hooks.items():
            gdb.execute(f"define {hook}\n{command}\nend", to_string=True)


def is_defined(command: str) -> bool:
    """Whether the user has defined a command of just that name.

    `show user` takes the beginning of another one's, too, and what completes a name may be one of the program's.
    """
    try:
        execute(f"show user {command}")
    except DebuggerError:
        return False
    return command in execute(f"complete {command}").splitlines()
