"""Binds the shared command declarations to GDB.

Takes the declarations and the `GdbDebugger`; GDB's commands of the same names run them and print their blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import gdb

from gdbext.gdb_api.run_commands import execute, sentences, untraced
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

    def __init__(self, debugger: GdbDebugger, command: Command, name: str) -> None:
        self.__doc__ = command.help
        is_prefix = any(other.name.startswith(name + " ") for other in COMMANDS)
        self._debugger, self._command = debugger, command
        if command.completes == "ranks":
            super().__init__(name, gdb.COMMAND_DATA, prefix=is_prefix)  # by `complete` of the subclass
        elif command.completes in COMPLETIONS:
            super().__init__(name, gdb.COMMAND_DATA, prefix=is_prefix)
        else:
            super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_NONE, is_prefix)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the declared command and print its blocks."""
        from pieglobalsfind.debugger.render import render

        with sentences(), untraced(), self._debugger.returning():
            for text in render(self._command.run(self._debugger, argument), self._debugger.width):
                self._debugger.progress.clear()
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
        return [choice for choice in self._words(before) if choice.startswith(word)]

    def _words(self, before: str) -> Sequence[str]:
        from pieglobalsfind.debugger.commands import rank_list

        if self._command.name == rank_list.NAME and before.endswith("--"):
            return [option[len("--") :] for option in (rank_list.SHORT_STATE, rank_list.EACH)]
        if before.endswith("-"):
            return ["out"] if before.endswith("migrated-") else []
        is_state = before.split()[-1:] == [rank_list.SHORT_STATE]
        return STATES if is_state else ("all", *STATES)


class BoundToExpression(Bound):
    """One whose arguments are an expression and a set of ranks, or a set and a command.

    Where a set may stand, GDB would offer every symbol of the program; these offer the words for sets of ranks.
    """

    def complete(self, text: str, word: Optional[str]) -> Union[int, Sequence[str]]:
        """`word` is None where GDB asks first how to split the text into words."""
        if self._command.completes == "command" and " " in text:
            return [] if word is None else completed(text.partition(" ")[2], word)
        if not self._is_at_set(text.rpartition(" ")[0], text.rpartition(" ")[2]):
            return COMPLETIONS[self._command.completes]
        return [] if word is None else [choice for choice in ("all", *STATES) if choice.startswith(word)]

    def _is_at_set(self, before: str, word: str) -> bool:
        from pieglobalsfind.debugger.commands import rank_print

        if "SET" not in self._command.arguments:
            return False
        if self._command.completes == "command":
            return not before.strip()
        return rank_print.is_operand(before.strip()) or not (before.strip() or word)


def completed(command: str, word: str) -> list[str]:
    """What GDB itself offers in place of a command's last word."""
    before = command[: len(command) - len(word)]
    offered = execute(f"complete {command}").splitlines()
    return [line[len(before) :] for line in offered if line.startswith(before)]


def bind(debugger: GdbDebugger) -> None:
    """Make every declared command known to GDB, and `info ranks` beside `info threads`."""
    for command in COMMANDS:
        for name in (command.name, *command.aliases, *(("info ranks",) if command.name == "rank list" else ())):
            kind = BoundToExpression if command.completes in COMPLETIONS else Bound
            (BoundToRanks if command.completes == "ranks" else kind)(debugger, command, name)
