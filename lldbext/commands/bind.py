"""Binds the shared command declarations to LLDB.

Takes the declarations and a debugger; LLDB's commands of the same first words run them. LLDB can't have `rank N` beside
`rank list`, so `rank` is one command to it, and finds the declaration by its longest name.
"""

from __future__ import annotations

from typing import Any, ClassVar

import lldb

from lldbext.commands import for_editors, rank_break, rank_threads
from lldbext.lldb_api import bytecode_cache
from lldbext.lldb_api.run_commands import sentence_of
from lldbext.selection.debugger import LldbDebugger
from pieglobalsfind.debugger.commands import COMMANDS
from pieglobalsfind.debugger.declare import Command
from pieglobalsfind.debugger.render import render
from pieglobalsfind.errors import UsageError


class Bound:
    """All declared commands that begin with the same word; LLDB makes one for each debugger."""

    word: ClassVar[str]

    def __init__(self, debugger: Any, internal_dict: dict[str, Any]) -> None:
        self._debugger = LldbDebugger(debugger)

    def __call__(self, debugger: Any, arguments: str, context: Any, result: Any) -> None:
        """Run the declared command and print its blocks."""
        try:
            command, rest = resolved(self.word, arguments)
            self._debugger.be_current()
            self._debugger.check_is_alive()
            with bytecode_cache.kept():
                for text in render(command.run(self._debugger, rest), self._debugger.width):
                    result.AppendMessage(text)
            result.SetStatus(lldb.eReturnStatusSuccessFinishResult)
        except Exception as error:  # LLDB would print a traceback
            result.SetError(sentence_of(error))
        finally:
            self._debugger.settle()

    def get_short_help(self) -> str:
        """Return the summary for LLDB's help."""
        return declared(self.word)[0].summary

    def get_long_help(self) -> str:
        """Return the help text for LLDB's help."""
        return "\n\n".join(command.help for command in declared(self.word))


class RankCommand(Bound):
    """`rank` and everything that begins with it."""

    word = "rank"

    def get_long_help(self) -> str:
        """What all debuggers say, and LLDB's own commands by name."""
        return f"{super().get_long_help()}\n\n{NATIVE}"


class PieGlobalsFind(Bound):
    """`pieglobalsfind`."""

    word = "pieglobalsfind"


NATIVE = "LLDB's own commands that mean the selected rank: bt, up, down, frame select, frame variable, p, source list."
GDB_ONLY = {  # and what does the same in LLDB
    "rank watch": "select a rank, then: watchpoint set variable NAME",
    "rank tbreak": "rank break LOCATION SET, then: breakpoint modify --one-shot true NUMBER",
    "rank events": "in a shell: inspector events PID",
}
ALL = (*COMMANDS, rank_break.COMMAND, rank_threads.COMMAND)
BOUND = (RankCommand, PieGlobalsFind)


def declared(word: str) -> list[Command]:
    """Return the commands that begin with a word."""
    return [command for command in ALL if command.name.split()[0] == word]


def resolved(word: str, arguments: str) -> tuple[Command, str]:
    """The declaration that is meant, and what follows its name; raises `UsageError` for what only GDB has."""
    text = " ".join((word, arguments.strip()))
    for name, instead in GDB_ONLY.items():
        if begins(text, name):
            raise UsageError(f"`{name}` is there in GDB only", instead)
    named = [
        (name, command) for command in declared(word) for name in (command.name, *command.aliases) if begins(text, name)
    ]
    name, command = max(named, key=lambda pair: len(pair[0]))
    return command, text[len(name) :].strip()


def begins(text: str, name: str) -> bool:
    """Return whether a text begins with a command's name."""
    return text == name or text.startswith(name + " ")


def bind(debugger: Any) -> None:
    """Make every declared command known to a debugger."""
    for kind in BOUND:
        debugger.HandleCommand(f"command script add -o -c {__name__}.{kind.__name__} {kind.word}")
    kind_of_editors = f"{for_editors.__name__}.{for_editors.EditorCommand.__name__}"
    debugger.HandleCommand(f"command script add -o -c {kind_of_editors} {for_editors.NAME}")
