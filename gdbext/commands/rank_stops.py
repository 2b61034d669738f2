"""`rank break`, `rank tbreak`, `rank watch` and `rank events`: stops and reports that concern certain ranks only.

Takes GDB's own breakpoints and watchpoints; adds which ranks they are for, as a condition that users see in
`info breakpoints` and may change there. Everything else about them is GDB's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import gdb

from gdbext.gdb_api.language import language
from gdbext.gdb_api.run_gdb import execute, gdb_errors, sentences
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.debugger import breakpoint_arguments
from pieglobalsfind.errors import NotVirtualizedError, TargetError, UsageError
from pieglobalsfind.hints import Optional
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session import shared_memory_ranks
from pieglobalsfind.session.process_view import ProcessView

HARDWARE, WORD = 4, 8  # debug registers of x86-64, and bytes that one watches
HARDWARE_WATCHPOINTS = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_READ_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
INTEGERS = {1: "signed char", 2: "short", 4: "int", 8: "long"}  # C's types for Fortran's, by their size
IN_C = {gdb.TYPE_CODE_INT: INTEGERS, gdb.TYPE_CODE_BOOL: INTEGERS, gdb.TYPE_CODE_FLT: {4: "float", 8: "double"}}
LANGUAGE_WARNING = "Warning: the current language does not match this frame.\n"  # of the C that we have GDB read
ONLY_RANKS = r"(?s)\$_rank_in\([\"']([\d,-]+)[\"']\)(?: (?:&&|\.and\.) \((.*)\))?"


class RankIn(gdb.Function):
    """$_rank_in("SET"): whether the rank in question is in a set such as "0-3,7".

    That is the selected one; in a breakpoint's condition the one that stops, in whichever inferior.
    """

    def __init__(self, face: GdbDebugger) -> None:
        super().__init__("_rank_in")
        self._face = face

    def invoke(self, *args: gdb.Value) -> bool:
        with sentences():
            if len(args) != 1:
                raise UsageError('$_rank_in("SET") takes one argument')
            rank = self._face.in_focus
            return rank is not None and breakpoint_arguments.is_in(rank, text_of(args[0]))


def ranks_of(condition: Optional[str]) -> tuple[Optional[str], Optional[str]]:
    """The set that a condition of `rank break` is for, and the rest of it; (None, condition) for any other."""
    found = re.fullmatch(ONLY_RANKS, condition or "")
    return (found.group(1), found.group(2)) if found else (None, condition)


class RankBreak(gdb.Command):
    """Set a breakpoint that stops certain ranks only.
    Usage: rank break LOCATION [SET] [if COND]
    Without SET it stops every rank, as plain `break` does. COND means what it means in the rank that stops."""

    name, command = "rank break", "break"

    def __init__(self, face: GdbDebugger) -> None:
        super().__init__(self.name, gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_LOCATION)
        self._face = face

    def invoke(self, argument: str, from_tty: bool) -> None:
        with sentences(), gdb_errors():
            asked = breakpoint_arguments.parse(argument)
            condition = restricted(self._face, asked.chosen, asked.condition)
            gdb.execute(f"{self.command} {asked.location}" + (f" if {condition}" if condition else ""), from_tty)


class RankTbreak(RankBreak):
    """Set a breakpoint that stops the first of certain ranks to reach it, once.
    Usage: rank tbreak LOCATION [SET] [if COND]"""

    name, command = "rank tbreak", "tbreak"


def restricted(face: GdbDebugger, chosen: str, condition: str) -> str:
    """A condition for the ranks that are in the set now."""
    if chosen in ("", "all"):
        return condition
    parsed, numbers = rankset.parse(chosen), chosen
    with suppress(NotVirtualizedError, TargetError):  # there are no ranks yet
        rankset.check_may_exist(parsed, face.moment().table)
    if not all(isinstance(item, rankset.Span) for item in parsed):
        numbers = rankset.compact(face.job().select(parsed, face.location))
        if not numbers:
            raise UsageError(f"no rank is in {chosen}", rankset.HINT)
    quote, both = ("'", ".and.") if language() == "fortran" else ('"', "&&")
    only = f"$_rank_in({quote}{numbers}{quote})"
    return f"{only} {both} ({condition})" if condition else only


def text_of(value: gdb.Value) -> str:
    """A string of the language that is set; GDB has Fortran's as they are printed only."""
    try:
        return value.string()
    except gdb.error:
        return value.format_string().strip("'")


def watch_command(expression: str) -> str:
    """GDB itself spells the place as C does, which it can't read in Fortran."""
    value = gdb.parse_and_eval(expression)
    check_size(expression, value.type.sizeof)
    if language() != "fortran":
        return f"watch -location {expression}"
    kind = IN_C.get(value.type.strip_typedefs().code, {}).get(value.type.sizeof)
    if kind is None or value.address is None:
        raise UsageError(f"{expression} is no integer, logical or real of up to 8 bytes", "watch a part of it")
    return f"with language c -- watch -location *({kind} *) {int(value.address):#x}"


def check_size(expression: str, size: int) -> None:
    """GDB would watch by executing instruction after instruction otherwise, and comparing: a job would hardly go on."""
    if size > HARDWARE * WORD:
        raise UsageError(
            f"{expression} has {size} bytes, and the processor can watch {HARDWARE} places of {WORD}",
            "watch a part of it",
        )


def check_is_attached(moment: ProcessView, number: int) -> None:
    """The processor watches what threads do that GDB is attached to."""
    rank = moment.rank(number)
    if rank.address_space and not shared_memory_ranks.is_attached(moment, rank):
        process = f"process {rank.address_space}, which GDB is not attached to"
        raise UsageError(f"rank {number} runs in {process}: what it writes can't be watched", "attach to that one")


class RankWatch(gdb.Command):
    """Stop when a variable changes on certain ranks.
    Usage: rank watch EXPR [SET]
    EXPR means what it means in each rank's nearest user frame; its place there is watched, whoever writes to it.
    Without SET: on the selected rank. The processor watches up to 4 places."""

    def __init__(self, face: GdbDebugger) -> None:
        super().__init__("rank watch", gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_EXPRESSION)
        self._face = face

    def invoke(self, argument: str, from_tty: bool) -> None:
        with sentences(), gdb_errors(), self._face.returning():
            expression, numbers = self._arguments(argument)
            already = sum(one.type in HARDWARE_WATCHPOINTS for one in gdb.breakpoints())
            if already + len(numbers) > HARDWARE:
                raise UsageError(
                    f"{already + len(numbers)} places are more than the {HARDWARE} that the processor can watch",
                    "name fewer ranks, or delete watchpoints",
                )
            for number in numbers:
                with self._face.at_user_frame(number):
                    check_is_attached(self._face.moment(), number)
                    told = execute(watch_command(expression)).replace(LANGUAGE_WARNING, "")
                    gdb.write(f"Rank {number}: {told}")

    def _arguments(self, argument: str) -> tuple[str, tuple[int, ...]]:
        expression, _, last = argument.strip().rpartition(" ")
        chosen = rankset.recognize(last) if expression else None
        if chosen is None:
            expression, selected = argument.strip(), self._face.selected
            if expression and selected is None:
                raise UsageError("no rank is selected", "name the ranks: rank watch EXPR 0-3")
            chosen = (rankset.Span(selected or 0, selected or 0),)
        if not expression:
            raise UsageError("there is no expression to watch", "for instance: rank watch residual 3")
        return expression, self._face.job().select(chosen, self._face.location)


KINDS = {
    1: "ranks are about to be made",
    2: "all ranks are made",
    3: "rank {rank} is created",
    4: "rank {rank} is about to be packed",
    5: "rank {rank} has arrived",
    6: "rank {rank} has ended",
}


class RankEvents(gdb.Command):
    """Tell of ranks that are created, migrate and end, as it happens.
    Usage: rank events on|off"""

    def __init__(self) -> None:
        super().__init__("rank events", gdb.COMMAND_RUNNING)
        self._on = False
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_on(self) -> bool:
        return self._on

    def complete(self, text: str, word: Optional[str]) -> list[str]:
        """`word` is None where GDB asks first how to split the text into words."""
        return [] if word is None else [one for one in ("on", "off") if one.startswith(word)]

    def invoke(self, argument: str, from_tty: bool) -> None:
        with sentences():
            word = argument.strip()
            if word not in ("", "on", "off"):
                raise UsageError("`rank events` takes on or off")
            if word:
                self._on = word == "on"
                self.on_change()
            gdb.write(f"Events of ranks are {'told' if self._on else 'not told'}.\n")

    def tell(self, kind: int, rank: int) -> None:
        """One event of the runtime."""
        if self._on:
            gdb.write(f"[{KINDS.get(kind, 'event {kind} of rank {rank}').format(kind=kind, rank=rank)}]\n")


def bind(face: GdbDebugger) -> RankEvents:
    """Make the commands known to GDB."""
    RankIn(face)
    RankBreak(face)
    RankTbreak(face)
    RankWatch(face)
    return RankEvents()
