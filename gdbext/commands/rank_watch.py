"""`rank watch EXPR [SET]`: watchpoints on certain ranks' own instances of a variable.

Takes GDB's own watchpoints, each on the place that an expression means in one rank.
"""

from __future__ import annotations

from typing import Optional

import gdb

from gdbext.gdb_api.language import IN_C, language
from gdbext.gdb_api.processor import processor
from gdbext.gdb_api.run_commands import execute, gdb_errors, sentences
from gdbext.selection.debugger import GdbDebugger
from gdbext.watchpoints.changes_during_symbol_switch import Changes
from gdbext.watchpoints.expression_by_address import place_of
from gdbext.watchpoints.remapped_data import RemappedWatchpoint
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Redirect, Region
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session import breakpoints_in_shared_memory
from pieglobalsfind.session.process_view import ProcessView

MAPPED = "mmap"  # RankTable.method
WORD = 8  # bytes that a register of the processor watches
HARDWARE_WATCHPOINTS = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_READ_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
LANGUAGE_WARNING = "Warning: the current language does not match this frame.\n"  # of the C that we have GDB read


def watch_command(expression: str) -> str:
    """GDB itself spells the place as C does, which it can't read in Fortran."""
    value = gdb.parse_and_eval(expression)
    check_size(expression, value.type.sizeof)
    if language() != "fortran":
        return f"watch -location {expression}"
    kind = IN_C.get(value.type.strip_typedefs().code, {}).get(value.type.sizeof)
    if kind is None or value.address is None:
        raise UsageError(f"{expression} is not an integer, logical or real of up to 8 bytes", "watch a part of it")
    return f"with language c -- watch -location *({kind} *) {int(value.address):#x}"


def check_size(expression: str, size: int) -> None:
    """GDB would watch by executing instruction after instruction otherwise, and comparing: a job would hardly go on."""
    places = processor().watched_places
    if size > places * WORD:
        raise UsageError(
            f"{expression} has {size} bytes, and the processor can watch {places} places of {WORD}",
            "watch a part of it",
        )


def check_is_attached(moment: ProcessView, number: int) -> None:
    """The processor watches what threads do that GDB is attached to."""
    rank = moment.rank(number)
    if rank.address_space and not breakpoints_in_shared_memory.is_attached(moment, rank):
        process = f"process {rank.address_space}, which GDB is not attached to"
        raise UsageError(f"rank {number} runs in {process}: its writes can't be watched", "attach to that one")


def shared_address(moment: ProcessView, number: int, expression: str) -> Optional[int]:
    """Where a rank writes a variable of which SMPI maps one rank's at a time; None if that is where it is read."""
    address = gdb.parse_and_eval(expression).address
    if moment.table.method != MAPPED or address is None:
        return None
    for placement in moment.rank(number).placements:
        if isinstance(placement, Redirect) and int(address) in Region(placement.storage, placement.size):
            return placement.original + int(address) - placement.storage
    return None


def watch_remapped(expression: str, number: int, address: int, changes: Changes) -> None:
    """Watch what a rank writes at an address in common."""
    own = place_of(expression)
    if own is None:
        raise UsageError(f"{expression} is not an integer, logical or real of up to 8 bytes", "watch a part of it")
    check_size(expression, own.size)
    RemappedWatchpoint(expression, number, own, address, changes)


class RankWatch(gdb.Command):
    """Stop when a variable changes on certain ranks.
    Usage: rank watch EXPR [SET]
    EXPR means what it means in each rank's nearest user frame; its place there is watched, whichever rank writes to it.
    Without SET: on the selected rank. The processor watches up to 4 places."""

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__("rank watch", gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_EXPRESSION)
        self._debugger = debugger

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Set a watchpoint on an expression's storage in each rank of a set."""
        with sentences(), gdb_errors(), self._debugger.returning():
            expression, numbers = self._arguments(argument)
            already = sum(gdb_breakpoint.type in HARDWARE_WATCHPOINTS for gdb_breakpoint in gdb.breakpoints())
            places = processor().watched_places
            if already + len(numbers) > places:
                raise UsageError(
                    f"{already + len(numbers)} places are more than the {places} that the processor can watch",
                    "name fewer ranks, or delete watchpoints",
                )
            for number in numbers:
                with self._debugger.at_user_frame(number):
                    check_is_attached(self._debugger.moment(), number)
                    self._watch(expression, number)

    def _watch(self, expression: str, number: int) -> None:
        address = shared_address(self._debugger.moment(), number, expression)
        if address is None:
            answer = execute(watch_command(expression)).replace(LANGUAGE_WARNING, "")
            gdb.write(f"Rank {number}: {answer}")
            return
        gdb.write(f"Rank {number}: ")  # GDB itself goes on
        watch_remapped(expression, number, address, self._debugger.watches.changes)

    def _arguments(self, argument: str) -> tuple[str, tuple[int, ...]]:
        expression, _, last = argument.strip().rpartition(" ")
        chosen = rankset.recognize(last) if expression else None
        if chosen is None:
            expression, selected = argument.strip(), self._debugger.selected
            if expression and selected is None:
                raise UsageError("no rank is selected", "name the ranks: rank watch EXPR 0-3")
            chosen = (rankset.Span(selected or 0, selected or 0),)
        if not expression:
            raise UsageError("no expression to watch is given", "for instance: rank watch residual 3")
        return expression, self._debugger.job().select(chosen, self._debugger.location)


def bind(debugger: GdbDebugger) -> None:
    """Make the command known to GDB."""
    RankWatch(debugger)
