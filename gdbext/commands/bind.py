"""Binds the shared command declarations to GDB.

Takes the declarations and the face; GDB's commands of the same names run them and print their blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import gdb

from gdbext.gdb_api.run_gdb import sentences, untraced
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.debugger.commands import COMMANDS
from pieglobalsfind.debugger.declare import Command
from pieglobalsfind.model import STATES

COMPLETIONS = {
    "expression": gdb.COMPLETE_EXPRESSION,
    "command": gdb.COMPLETE_COMMAND,
}


class Bound(gdb.Command):
    """A declared command as one of GDB's."""

    def __init__(self, face: GdbDebugger, command: Command, name: str) -> None:
        self.__doc__ = command.help
        is_prefix = any(other.name.startswith(name + " ") for other in COMMANDS)
        self._face, self._command = face, command
        if command.completes == "ranks":
            super().__init__(name, gdb.COMMAND_DATA, prefix=is_prefix)  # by `complete` of the subclass
        else:
            completer = COMPLETIONS.get(command.completes, gdb.COMPLETE_NONE)
            super().__init__(name, gdb.COMMAND_DATA, completer, is_prefix)

    def invoke(self, argument: str, from_tty: bool) -> None:
        from pieglobalsfind.debugger.render import render

        with sentences(), untraced(), self._face.returning():
            for text in render(self._command.run(self._face, argument), self._face.width):
                self._face.progress.clear()
                gdb.write(text + "\n")


class BoundToRanks(Bound):
    """One whose arguments are sets of ranks: completes their words."""

    def complete(self, text: str, word: Optional[str]) -> Sequence[str]:
        """GDB takes dashes for the ends of words: `word` is what follows the last one.

        It is None where GDB asks first how to split the text into words.
        """
        if word is None:
            return ()
        before = text[: len(text) - len(word)]
        return [one for one in self._words(before) if one.startswith(word)]

    def _words(self, before: str) -> Sequence[str]:
        from pieglobalsfind.debugger.commands import rank_list

        if self._command.name == rank_list.NAME and before.endswith("--"):
            return [rank_list.SHORT_STATE[len("--") :]]
        if before.endswith("-"):
            return ["out"] if before.endswith("migrated-") else []
        is_state = before.split()[-1:] == [rank_list.SHORT_STATE]
        return STATES if is_state else ("all", *STATES)


def bind(face: GdbDebugger) -> None:
    """Make every declared command known to GDB."""
    for command in COMMANDS:
        for name in (command.name, *command.aliases):
            (BoundToRanks if command.completes == "ranks" else Bound)(face, command, name)
