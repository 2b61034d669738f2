"""An internal breakpoint in one rank's copy that stops in the name of a user's breakpoint, by that one's rules.

GDB asks it inside its own handling of a stop: it tests condition, thread and ignore count there, notes the hit, and has
nothing done until GDB is at its prompt again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

import gdb

from gdbext.breakpoints import evaluate_condition
from gdbext.breakpoints.evaluate_condition import may_hold, ranks_of
from gdbext.breakpoints.hit_counts import Hits
from gdbext.gdb_api.breakpoint_locations import has_silent_commands, invalid_addresses, locations_in, locations_of
from gdbext.gdb_api.event_handlers import interrupt_again
from gdbext.gdb_api.inferior_breakpoint import InferiorBreakpoint
from gdbext.gdb_api.language import follow_frame
from gdbext.gdb_api.momentary_breakpoints import is_stepping
from gdbext.gdb_api.run_commands import uninterrupted, warnings
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.debugger.breakpoint_arguments import is_in
from pieglobalsfind.errors import RanklensError, TargetError

Key = tuple[int, int, int]  # the user's breakpoint, the rank, the address
SHARED = -1  # in place of the rank


@dataclass(frozen=True)
class Hit:
    """A stop in the name of a user's breakpoint; `location` is its number among several, else 0."""

    user: gdb.Breakpoint
    number: int
    location: int
    rank: Optional[int]
    temporary: bool
    silent: bool


class Follower(InferiorBreakpoint):
    """Stands in one rank's copy for a user's breakpoint."""

    def __init__(
        self,
        debugger: GdbDebugger,
        on_hit: Callable[[Hit], None],
        hits: Hits,
        user: gdb.Breakpoint,
        key: Key,
        address: int,
    ) -> None:
        super().__init__(address, bound=len(gdb.inferiors()) > 1)
        self._hits = hits
        self.key = key
        self.rank = None if key[1] == SHARED else key[1]
        self._on_hit = on_hit
        self._debugger = debugger
        self.user: Any = user  # the breakpoint or dprintf that this one stands for
        self.is_silenced = False
        self._rests = False
        self.peers: Callable[[int], Iterator[Follower]] = lambda address: iter(())
        self._came_first = False  # before the symbols, which a peer has moved to the rank in the same stop

    def renewed(self) -> Follower:
        """Return a new breakpoint of GDB's at the same place."""
        follower = type(self)(self._debugger, self._on_hit, self._hits, self.user, self.key, self.address)
        follower.peers = self.peers
        return follower

    def rest(self, rests: bool) -> None:
        """Leave its place to GDB's own breakpoint there, or be there again."""
        if rests != self._rests and self.is_valid():
            self._rests = rests
            self.enabled = not rests

    def native_addresses(self) -> Iterator[int]:
        """Where GDB stops for the user's breakpoint by itself, in this inferior."""
        user = self.user
        for location in locations_in(user, self.home) if user.is_valid() and user.enabled else ():
            if location.enabled:
                yield location.address

    def leave(self, native: bool) -> None:
        """Leave it to GDB itself to stop here, or take it from GDB."""
        for location in locations_in(self.user, self.home) if self.user.is_valid() else ():
            if location.address == self.address and bool(location.enabled) != native:
                location.enabled = native

    def _adopt_commands(self) -> None:
        """What GDB does once it has stopped: it takes them after it has asked `stop`."""
        self.commands = self.user.commands or ""

    def stop(self) -> bool:
        """Whether the user's breakpoint stops here; inside GDB's handling of the stop."""
        stops, is_interrupted = True, False
        self.is_silenced = False
        try:
            if not self._is_meant():
                return self._stops_for_a_change()
        except KeyboardInterrupt:  # so does GDB where Ctrl-C comes while it tests a condition
            is_interrupted = True
            self._tell_error("Quit")
        try:
            with uninterrupted():
                if self._is_ignored() and not is_interrupted:
                    stops = False
                else:
                    self._on_hit(self._hit())
                    self._adopt_commands()
        except KeyboardInterrupt:
            is_interrupted = True
        if is_interrupted and (self.commands or not stops):  # else GDB comes to its prompt
            interrupt_again()
        return stops

    def _stops_for_a_change(self) -> bool:
        """Whether GDB misses what a watchpoint is for, because symbols have moved; not by the user's commands then."""
        if not self._debugger.watches.changes.unseen:
            return False
        self.is_silenced = True
        self.commands = ""
        return True

    def _is_meant(self) -> bool:
        user = self.user
        if not user.is_valid() or not user.enabled or self.home != gdb.selected_inferior().num:
            return False
        if self._is_native() or not self._is_thread():
            return False
        only, condition = ranks_of(user.condition)
        try:
            if self.key[1] == SHARED:
                self.rank = self._debugger.rank_that_runs()
            if only is not None and (self.rank is None or not is_in(self.rank, only)):
                return False
            if hasattr(user, "stop"):  # a user's class of breakpoints; GDB allows it no other condition
                return self._says_stop()
            return condition is None or self._is_true(condition)
        except (gdb.error, RanklensError) as error:
            if self.address in invalid_addresses(user):  # now that symbols are the rank's: GDB would not stop here
                return False
            self._tell_error(str(error))
            return True

    def _tell_error(self, error: str) -> None:
        from pieglobalsfind.shell.escape import escape

        gdb.write(f"Error in testing condition for breakpoint {self.user.number}:\n{escape(error)}\n")

    def _is_ignored(self) -> bool:
        """Count a hit; whether the user wants to ignore it."""
        self._hits.add(self.user.number, self.rank)
        if self.user.ignore_count > 0:
            self.user.ignore_count -= 1
            return True
        return False

    def _hit(self) -> Hit:
        user = self.user
        with warnings("the rank's symbols are missing"):
            self._move_symbols()
        addresses = [location.address for location in locations_of(user)]
        location = addresses.index(self.address) + 1 if len(addresses) > 1 and self.address in addresses else 0
        return Hit(user, user.number, location, self.rank, bool(user.temporary), has_silent_commands(user))

    def _is_native(self) -> bool:
        """Whether GDB had a location of the user's breakpoint here as the rank came by, and stops by itself."""
        came_first, self._came_first = self._came_first, False
        return not came_first and self.address in self.native_addresses()

    def _is_thread(self) -> bool:
        wanted = self.user.thread
        return wanted is None or wanted == gdb.selected_thread().global_num

    def _is_true(self, condition: str) -> bool:
        """The condition with the rank's own globals and the frame's locals, and if that will do without its symbols.

        While another rank steps, its symbols stay: GDB knows the step's end by them.
        """
        focus, rank = self._debugger.state().focus, self.rank
        if rank is not None and focus.rank != rank:
            if not may_hold(focus, rank, condition):
                return False
            holds = self._debugger.conditions.is_true(rank, condition)
            if holds is not None:
                return holds
            if focus.rank is not None and is_stepping():
                return evaluate_condition.is_true(focus, self._debugger.moment(), rank, condition)
        self._move_symbols()
        follow_frame()
        holds = bool(gdb.parse_and_eval(condition))
        if rank is not None:
            self._debugger.conditions.learn(rank, condition, holds)
        return holds

    def _says_stop(self) -> bool:
        """What the user's own `stop` method says; an error in it stops, as in GDB."""
        stepping = self._debugger.state().focus.rank
        if self.rank is not None and stepping not in (None, self.rank) and is_stepping():
            raise TargetError(f"its stop() can't be called for rank {self.rank} while rank {stepping} steps")
        self._move_symbols()
        try:
            return bool(self.user.stop())
        except Exception as error:
            gdb.write(f"Python Exception {type(error)}: {error}\n", gdb.STDERR)
            return True

    def _move_symbols(self) -> None:
        """GDB asks the followers at one place in the order in which they were made."""
        if self.rank is None:
            return
        focus = self._debugger.state().focus
        if focus.rank != self.rank:
            for peer in self.peers(self.address):
                peer._came_first = peer.number < self.number
        focus.move(self._debugger.moment(), self.rank, inserted=True)


class DprintfFollower(Follower):
    """Prints in one rank what a dprintf prints where GDB has it, and never stops."""

    def stop(self) -> bool:
        """Print, inside GDB's handling of the stop."""
        with warnings("a dprintf is missing"):
            if self._is_meant() and not self._is_ignored():
                self._move_symbols()
                self._print()
        return False

    def _print(self) -> None:
        """Do what GDB does at a dprintf; an error is printed, and the program goes on."""
        action, _, expression = self.user.command.partition(" ")
        if action != "call":
            # An error would have GDB come to its prompt, were it caught here: -c has it told and forgotten.
            gdb.execute(f"frame apply level 0 -q -c {self.user.command}")
            return
        try:
            # As a command it would never end here from GDB 14 on: GDB waits after it until this stop is handled.
            gdb.parse_and_eval(expression)
        except gdb.error as error:
            gdb.write(f"{error}\n", gdb.STDERR)

    def _is_ignored(self) -> bool:
        if self.user.ignore_count > 0:
            self.user.ignore_count -= 1
            return True
        return False
