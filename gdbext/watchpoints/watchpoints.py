"""Plain watchpoints (`watch ticks`) stay with the rank in which they were set.

Takes users' watchpoints as they come, and the rank whose symbols GDB is about to lose. GDB reads the expression of a
watchpoint again when symbols change, and would go on with another rank's variable of that name; of one of a function
it would say that the program had left the block. Where symbols move, a watchpoint on the place takes over.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Optional

import gdb

from gdbext.gdb_api.run_before_users_commands import output_of
from gdbext.gdb_api.run_commands import DebuggerError, execute, warnings
from gdbext.watchpoints.changes_during_symbol_switch import Changes

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.watchpoints.expression_by_address import ValuePlace
    from gdbext.watchpoints.scope_ends import ScopeEnd

COMMANDS = {
    gdb.BP_WATCHPOINT: "watch",
    gdb.BP_HARDWARE_WATCHPOINT: "watch",
    gdb.BP_READ_WATCHPOINT: "rwatch",
    gdb.BP_ACCESS_WATCHPOINT: "awatch",
}
RETURNS = r"(?s)saved [a-z]+ = (0x[0-9a-f]+).*Previous frame's sp is (0x[0-9a-f]+)"
LOCATION = "-location "  # how the expression of a watchpoint begins that keeps its place by itself


@dataclass(frozen=True)
class WatchedPlace:
    """Where a watchpoint was set, and what it means there by addresses: a `place`, or an `expression` of several.

    `text` and `condition` are as the user has written them, `restriction` is the condition by addresses. What is None
    can't be written so. `returns_to`: the address and stack pointer after the call in whose frame the place is.
    """

    inferior: int
    rank: int
    text: str
    place: Optional[ValuePlace]
    expression: Optional[str]
    condition: str
    restriction: Optional[str]
    returns_to: Optional[tuple[int, int]]


class Watches:
    """The users' watchpoints of one GDB."""

    def __init__(self) -> None:
        self.changes = Changes()
        self._homes: dict[int, WatchedPlace] = {}
        self._replaced: list[gdb.Breakpoint] = []
        self._ends: list[ScopeEnd] = []
        self._replaces = False
        self._newest = 0

    def noticed(self, watchpoint: Any, rank: Optional[int]) -> None:
        """A breakpoint of any kind was made or changed; `rank` is the one whose symbols GDB has."""
        if (
            self._replaces
            or rank is None
            or not watchpoint.is_valid()
            or not watchpoint.visible
            or watchpoint.type not in COMMANDS
        ):
            return
        if hasattr(watchpoint, "expression_in_rank"):
            self.changes.begin_again(watchpoint.number)
            return
        watched_place, condition = self._homes.get(watchpoint.number), watchpoint.condition or ""
        if watched_place is None and watchpoint.number > self._newest:
            self._newest = watchpoint.number
            home = self._homes[watchpoint.number] = home_of(rank, watchpoint.expression, condition)
            self.changes.begin(watchpoint.number, rank, home.place, home.expression)
        elif watched_place is not None and watched_place.condition != condition and watched_place.rank == rank:
            self._homes[watchpoint.number] = replace(
                watched_place, condition=condition, restriction=_restriction_of(condition)
            )

    def leave(self, rank: Optional[int], inside_stop: bool) -> None:
        """Before symbols move away from a rank. Inside a breakpoint's `stop` nothing may be deleted."""
        here = gdb.selected_inferior().num
        left = {number: home for number, home in self._homes.items() if (home.inferior, home.rank) == (here, rank)}
        if not left:
            return
        users = {gdb_breakpoint.number: gdb_breakpoint for gdb_breakpoint in gdb.breakpoints()}
        self._replaces = True
        try:
            for number, home in left.items():
                if number in users:
                    with warnings(f"watchpoint {number} may mean another rank"):
                        self._keep(users[number], home)
        finally:
            self._replaces = False
        if not inside_stop:
            self.settle()

    def _keep(self, user: gdb.Breakpoint, home: WatchedPlace) -> None:
        if home.text.startswith(LOCATION):
            if home.restriction and (user.condition or "") == home.condition:
                user.condition = home.restriction
                self._homes[user.number] = replace(home, condition=home.restriction)
            return
        if home.expression == home.text and home.restriction == home.condition:  # it names no variable
            return
        del self._homes[user.number]
        made = self._made(user, home)
        if made is None:
            if user.enabled:
                user.enabled = False
                gdb.write(
                    f"[Watchpoint {user.number} is disabled, {home.text} would mean another rank than {home.rank}: "
                    "`rank watch` watches a variable or a part of one]\n"
                )
            return
        made.ignore_count = user.ignore_count
        if user.commands:
            made.commands = user.commands
        made.silent = user.silent
        made.thread = user.thread
        made.enabled, user.enabled = user.enabled, False
        self._replaced.append(user)
        gdb.write(f"[Watchpoint {user.number} continues as {made.number}: {home.text} of rank {home.rank}]\n")
        if home.returns_to is not None:
            from gdbext.watchpoints.scope_ends import ScopeEnd

            self._ends.append(ScopeEnd(made, home.returns_to))

    def _made(self, user: gdb.Breakpoint, home: WatchedPlace) -> Optional[gdb.Breakpoint]:
        """The watchpoint that takes over; None if what was watched can't be written by addresses."""
        from gdbext.gdb_api.language import language

        watched, reading = home.expression, ""
        if home.place is not None:
            is_fortran = language() == "fortran"
            watched = LOCATION + (home.place.text if is_fortran else spelled(home, home.place))
            reading = "with language c -- " if is_fortran else ""
        if watched is None or home.restriction is None:
            return None
        before = {gdb_breakpoint.number for gdb_breakpoint in gdb.breakpoints()}
        try:
            execute(f"{reading}{COMMANDS[user.type]} {watched}")
        except DebuggerError:
            return None
        made = next(gdb_breakpoint for gdb_breakpoint in gdb.breakpoints() if gdb_breakpoint.number not in before)
        self._newest = made.number
        kept = replace(home, text=made.expression or "", condition=home.restriction, returns_to=None)
        self._homes[made.number] = kept
        self.changes.go_on(user.number, made.number)
        if home.restriction:
            made.condition = home.restriction
        return made

    def settle(self) -> None:
        """Delete what others have taken over from, once GDB is not in the midst of a stop."""
        replaced, self._replaced = self._replaced, []
        for gdb_breakpoint in replaced:
            if gdb_breakpoint.is_valid():
                gdb_breakpoint.delete()
        there = {gdb_breakpoint.number for gdb_breakpoint in gdb.breakpoints()} if self._homes else set()
        for number in self._homes.keys() - there:
            del self._homes[number]
            self.changes.forget(number)
        over = [end for end in self._ends if not end.watchpoint.is_valid()]
        self._ends = [end for end in self._ends if end not in over]
        for end in over:
            if end.is_valid():
                end.delete()

    def tell_ends(self) -> bool:
        """After a stop: whether a watched variable is no more, which GDB's words tell then."""
        left = [end for end in self._ends if end.is_reached and end.watchpoint.is_valid()]
        for scope_end in left:
            gdb.write(scope_end.text())
            scope_end.watchpoint.delete()
        if left:
            gdb.write(output_of("frame").partition("  ")[2])
        return bool(left)


def home_of(rank: int, expression: str, condition: str) -> WatchedPlace:
    """What a watchpoint means in the selected frame of a rank."""
    from gdbext.watchpoints import expression_by_address

    here = gdb.selected_inferior().num
    if expression.startswith(LOCATION):
        place = None
        with suppress(gdb.error):
            place = expression_by_address.place_of(expression[len(LOCATION) :])
        return WatchedPlace(here, rank, expression, place, None, condition, _restriction_of(condition), None)
    place, text = expression_by_address.part_of_variable(expression), expression_by_address.by_address(expression)
    returns_to = caller() if place is not None and place.is_local else None
    return WatchedPlace(here, rank, expression, place, text, condition, _restriction_of(condition), returns_to)


def _restriction_of(condition: str) -> Optional[str]:
    from gdbext.watchpoints import expression_by_address

    return expression_by_address.by_address(condition) if condition else ""


def caller() -> Optional[tuple[int, int]]:
    """Where the selected frame's function returns to, and the stack pointer then."""
    frame: Optional[gdb.Frame] = gdb.selected_frame()
    while frame is not None and frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    # Not by its caller: GDB does not look for `main`'s.
    match = re.search(RETURNS, execute(f"info frame level {frame.level()}")) if frame is not None else None
    return None if match is None else (int(match[1], 16), int(match[2], 16))


def spelled(home: WatchedPlace, place: ValuePlace) -> str:
    """The place as the user calls it, where that still means it."""
    with suppress(gdb.error):
        value = gdb.parse_and_eval(f"&({home.text})")
        if int(value) % (1 << 64) == place.address:
            return home.text
    return place.text
