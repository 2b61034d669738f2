"""`rank break` and `rank tbreak`: breakpoints that concern certain ranks only, and `$_rank_in`, by which they do.

Takes GDB's own breakpoints; adds which ranks they are for, as a condition that users see in `info breakpoints` and
may change there. Everything else about them is GDB's.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial

import gdb

from gdbext.gdb_api.hooks import with_program
from gdbext.gdb_api.language import language, text_of
from gdbext.gdb_api.run_commands import gdb_errors, sentences
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.debugger import breakpoint_arguments
from pieglobalsfind.errors import NotVirtualizedError, TargetError, UsageError
from pieglobalsfind.ranks import rankset


class RankIn(gdb.Function):
    """$_rank_in("SET"): whether the rank in question is in a set such as "0-3,7".

    That is the selected one; in a breakpoint's condition the one that stops, in whichever inferior.
    """

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__("_rank_in")
        self._debugger = debugger

    def invoke(self, *args: gdb.Value) -> bool:
        """Return whether the selected rank is in a set."""
        with sentences():
            if len(args) != 1:
                raise UsageError('$_rank_in("SET") takes one argument')
            rank, text = self._debugger.in_focus, text_of(args[0])
            is_in_set = breakpoint_arguments.is_in(-1 if rank is None else rank, text)
            return rank is not None and is_in_set


class RankBreak(gdb.Command):
    """Set a breakpoint that stops certain ranks only.
    Usage: rank break LOCATION [SET] [if COND]
    Without SET it stops every rank, as plain `break` does. COND means what it means in the rank that stops."""

    name, command = "rank break", "break"

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__(self.name, gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_LOCATION)
        self._debugger = debugger

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Set a breakpoint for the ranks of a set."""
        with sentences(), gdb_errors():
            asked = breakpoint_arguments.parse(argument)
            condition = restricted(self._debugger, asked.chosen, asked.condition)
            gdb.execute(f"{self.command} {asked.location}" + (f" if {condition}" if condition else ""), from_tty)


class RankTbreak(RankBreak):
    """Set a breakpoint that stops the first of certain ranks to reach it, once.
    Usage: rank tbreak LOCATION [SET] [if COND]"""

    name, command = "rank tbreak", "tbreak"


def restricted(debugger: GdbDebugger, chosen: str, condition: str) -> str:
    """A condition for the ranks that are in the set now."""
    if chosen in ("", "all"):
        return condition
    parsed, numbers = rankset.parse(chosen), chosen
    with suppress(NotVirtualizedError, TargetError):  # there are no ranks yet
        rankset.check_may_exist(parsed, debugger.moment().table)
    if not all(isinstance(item, rankset.Span) for item in parsed):
        numbers = rankset.compact(debugger.job().select(parsed, debugger.location))
        if not numbers:
            raise UsageError(f"no rank is in {chosen}", rankset.HINT)
    register_function(debugger)
    quote, both = ("'", ".and.") if language() == "fortran" else ('"', "&&")
    only = f"$_rank_in({quote}{numbers}{quote})"
    return f"{only} {both} ({condition})" if condition else only


@cache
def register_function(debugger: GdbDebugger) -> None:
    """Make the function known to GDB: by the first program, or before it by the first condition that calls it."""
    RankIn(debugger)


def bind(debugger: GdbDebugger) -> None:
    """Make the commands, and the function that their conditions call, known to GDB."""
    with_program(partial(register_function, debugger))
    RankBreak(debugger)
    RankTbreak(debugger)
