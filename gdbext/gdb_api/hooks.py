"""GDB runs `hook-step` before `step`, whose error keeps `step` from running, and `hookpost-step` after it.

Takes names of hooks and commands of ours. Hooks of the user's own are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import gdb

from gdbext.gdb_api.run_gdb import execute


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
    users = defined()
    ours = [item for group in groups if users.isdisjoint(group) for item in group.items()]
    gdb.execute("".join(f"define {hook}\n{command}\nend\n" for hook, command in ours), to_string=True)


def defined() -> set[str]:
    """The commands that users have defined, hooks of other commands among them."""
    titles = (line for line in execute("show user").splitlines() if line.startswith("User "))
    return {line.split('"')[1] for line in titles}
