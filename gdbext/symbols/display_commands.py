"""Our `display` and its kin, which replace GDB's commands once GDB would have deleted the user's displays.

Takes the displays; each command has GDB's help, and does what GDB's does.
"""

from __future__ import annotations

from collections.abc import Callable

import gdb

from gdbext.gdb_api.query import query
from gdbext.gdb_api.run_commands import execute, gdb_errors, sentences
from gdbext.symbols.own_displays import OwnDisplays

Act = Callable[[str, bool], None]


class DisplayCommand(gdb.Command):
    """One of the commands."""

    def __init__(self, name: str, completion: int, act: Act) -> None:
        super().__init__(name, gdb.COMMAND_DATA, completion)
        self._act = act

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Do what GDB's command of that name does."""
        with sentences(), gdb_errors():
            self._act(argument.strip(), from_tty)
        self.dont_repeat()


def replace_commands(displays: OwnDisplays) -> None:
    """Have GDB call these instead of its own."""

    def display(text: str, from_tty: bool) -> None:
        if text:
            displays.make(text, from_tty)
        else:
            displays.show()

    def undisplay(text: str, from_tty: bool) -> None:
        if text or query("Delete all auto-display expressions? "):
            displays.delete(text)

    acts: dict[str, tuple[int, Act]] = {
        "display": (gdb.COMPLETE_EXPRESSION, display),
        "undisplay": (gdb.COMPLETE_NONE, undisplay),
        "delete display": (gdb.COMPLETE_NONE, undisplay),
        "enable display": (gdb.COMPLETE_NONE, lambda text, _: displays.switch(text, True)),
        "disable display": (gdb.COMPLETE_NONE, lambda text, _: displays.switch(text, False)),
        "info display": (gdb.COMPLETE_NONE, lambda text, _: displays.tell()),
    }
    for name, (completion, act) in acts.items():
        documented = type("Documented", (DisplayCommand,), {"__doc__": execute(f"help {name}").rstrip("\n")})
        documented(name, completion, act)
