"""Hooks that have GDB run our commands before and after its own ones (`hook-step`, `hookpost-step`).

Takes names of hooks and commands of ours. Hooks of the user's own are left alone. GDB lists ours with the commands that
users define, as it does convenience functions and variables with theirs: a GDB without a program, in which there is
nothing for them to do, gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import gdb

from gdbext.gdb_api.run_commands import Program, execute

_waiting: list[Callable[[], None]] = []


def with_program(act: Callable[[], None]) -> None:
    """Call it as soon as GDB has a program, a process or a core file."""
    if Program.is_known:
        act()
    else:
        _waiting.append(act)


def look_for_program() -> None:
    """Do what waits for a program if there is one."""
    if Program.is_known or not has_program():
        return
    Program.is_known = True
    for act in _waiting:
        act()
    _waiting.clear()


def has_program() -> bool:
    """Return whether GDB has anything to debug."""
    return any(inferior.pid or inferior.progspace.objfiles() for inferior in gdb.inferiors())


class Called(gdb.Command):
    """A command that hooks call, and no user."""

    def __init__(self, name: str, act: Callable[[], object]) -> None:
        super().__init__(name, gdb.COMMAND_MAINTENANCE)
        self._act = act

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Call what was registered."""
        self._act()


def define(*groups: Mapping[str, str]) -> None:
    """Have each hook run a command of ours, but where the user has one of the same group already."""
    with_program(lambda: _define(groups))


def _define(groups: Sequence[Mapping[str, str]]) -> None:
    users = defined()
    ours = [item for group in groups if users.isdisjoint(group) for item in group.items()]
    gdb.execute("".join(f"define {hook}\n{command}\nend\n" for hook, command in ours), to_string=True)


def defined() -> set[str]:
    """The commands that users have defined, hooks of other commands among them."""
    titles = (line for line in execute("show user").splitlines() if line.startswith("User "))
    return {line.split('"')[1] for line in titles}
