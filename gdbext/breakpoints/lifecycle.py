"""Puts users' breakpoints into every rank's copy, and takes them out before a copy is made or sent.

Takes GDB's breakpoints and the runtime's events (`rank_debug_event`). GDB itself resolves a user's breakpoint where the
symbols in focus are; for every other rank there is a `Follower` (inferior_followers.py). One file of symbols then
serves any number of ranks, and each of several inferiors follows its own.

Before the runtime copies an object no breakpoint is left in it: a copied int3 would trap where GDB knows of none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Optional

import gdb

from gdbext.breakpoints import hit_counts
from gdbext.breakpoints.condition_warnings import ConditionWarnings
from gdbext.breakpoints.disabled_by_gdb import DisabledByGdb
from gdbext.breakpoints.disabled_places import DisabledPlaces
from gdbext.breakpoints.followed_breakpoints import catches_in_code, follows, is_anything_in_code, leave_to_followers
from gdbext.breakpoints.hit_counts import Hits
from gdbext.breakpoints.hits_of_stop import HitsOfStop
from gdbext.breakpoints.inferior_followers import InferiorFollowers
from gdbext.breakpoints.inferior_state import InferiorState
from gdbext.breakpoints.listed_dprintfs import Dprintfs
from gdbext.breakpoints.queued_changes import QueuedChanges
from gdbext.breakpoints.rank_events import RankEvents
from gdbext.breakpoints.refused_breakpoints import give_up, spare_data, spare_task
from gdbext.breakpoints.runtime_calls import RuntimeCalls
from gdbext.breakpoints.runtime_hidden_by_sysroot import HiddenRuntime
from gdbext.gdb_api.breakpoint_locations import disable_stubs, locations_of, renew_condition
from gdbext.gdb_api.enable_counts import EnableCounts
from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.momentary_breakpoints import own_locations
from gdbext.gdb_api.run_before_users_commands import UsersCommands
from gdbext.gdb_api.run_commands import uninterrupted
from gdbext.gdb_api.target import connection_kind, is_core
from gdbext.selection.debugger import GdbDebugger
from gdbext.selection.inferiors import standing, within
from gdbext.symbols.focus import always_inserted
from pieglobalsfind.decoders.registry.layout import AFTER_COPIES, AFTER_UNPACK, BEFORE_COPIES, BEFORE_PACK, CREATED
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Region
from pieglobalsfind.session import breakpoints_in_shared_memory
from pieglobalsfind.session.process_view import ProcessView

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.breakpoints.event_breakpoints import EventBreakpoint

ROUNDS = 4  # of settling: what the first one changes is not news in the next


class Breakpoints:
    """All followers of one GDB, and how they come and go."""

    def __init__(self, debugger: GdbDebugger, events: RankEvents) -> None:
        self._debugger = debugger
        self._events = events
        self._event: Optional[EventBreakpoint] = None
        self._lives: dict[int, InferiorState] = {}
        self._pending = QueuedChanges()
        self.dprintfs = Dprintfs()
        self._settles = False
        self._has_moved = False  # with symbols, since locations were shared out
        self._woken_after = (0, 0)  # the move of symbols, by inferior and number, after which followers were woken
        self._hits = Hits()
        self._disabled = DisabledPlaces()
        self._enable_counts = EnableCounts()
        self.hits = HitsOfStop(self._enable_counts)
        self._warnings = ConditionWarnings()
        self.disabled_by_gdb = DisabledByGdb(debugger.inferiors, self._pending.add)
        self.has_ended = False  # since hits were counted
        hit_counts.bind(self._hits, self._followed, self._show_as_enabled, self._share_out)
        events.on_change = self.watch_events
        debugger.inferiors.before_move, debugger.inferiors.on_move = self._before_move, self._moved

    def _life(self, number: int = 0) -> InferiorState:
        """Of an inferior; 0: of the selected one."""
        number = number or gdb.selected_inferior().num
        if number not in self._lives:
            followers = InferiorFollowers(
                self._debugger, number, self.hits.add, self._hits, self.dprintfs, self._disabled
            )
            calls = RuntimeCalls(self._debugger, self._on_event, self._are_events_wanted, lambda: followers.ranks)
            hidden = HiddenRuntime(self._on_event, self.watch_events)
            self._lives[number] = InferiorState(followers, calls, hidden)
        return self._lives[number]

    @property
    def _followers(self) -> InferiorFollowers:
        return self._life().followers

    def _followed(self) -> Iterator[gdb.Breakpoint]:
        """Users' breakpoints that have stood in ranks' copies."""
        counted = set(self._hits.numbers)
        for user in filter(follows, gdb.breakpoints()):
            if user.number in counted or any(live.followers.stand_for(user.number) for live in self._lives.values()):
                yield user

    def before_run(self) -> None:
        """The program is about to run, perhaps again."""
        self.disabled_by_gdb.begin()
        self._disabled.begin(filter(follows, gdb.breakpoints()))

    def loaded(self) -> None:
        """GDB has read symbols of a process, perhaps of a new one."""
        inferior = gdb.selected_inferior()
        if self.has_ended and inferior.pid:
            self.has_ended = False
            if not inferior.was_attached:  # GDB begins to count again where it runs a program
                self._hits.clear()
        self.watch_events()

    def watch_events(self) -> None:
        """Break on the runtime's events as soon as the function is there, and something follows them."""
        if self._are_events_wanted():
            self._watch()

    def _are_events_wanted(self) -> bool:
        return self._events.is_on or self._is_anything_in_code()

    def _is_anything_in_code(self) -> bool:
        return is_anything_in_code() or self.dprintfs.are_wanted

    def watch_step(self) -> None:
        """The same before a step, which may meet an event without any breakpoint of the user's."""
        self._watch()

    def _watch(self) -> None:
        from gdbext.breakpoints import event_breakpoints

        for inferior in standing():
            self._life(inferior.num).hidden.watch(inferior)
        if self._event is None and event_breakpoints.function_exists(event_breakpoints.EVENT_FUNCTION):
            self._event = event_breakpoints.EventBreakpoint(self._on_event)
            self.spare_tasks()
        if self._event is None:
            for inferior in standing():
                calls = self._life(inferior.num).calls
                if not calls.are_watched and inferior.pid and connection_kind(inferior) != "core":
                    with within(inferior.num):
                        calls.watch(inferior)

    def spare_tasks(self) -> None:
        """Take out what would kill a process that GDB is not attached to (`shared_memory_ranks`)."""
        try:
            moment = self._debugger.moment()
        except RanklensError:
            return
        if not any(map(breakpoints_in_shared_memory.is_task, moment.table.ranks)):
            return
        for user in filter(follows, gdb.breakpoints()):
            spare_task(moment, user)
        self._followers.drop(lambda follower: breakpoints_in_shared_memory.danger(moment, follower.address) is not None)
        event = self._event
        if event is not None and event.enabled:
            event.enabled = all(
                breakpoints_in_shared_memory.danger(moment, location.address) is None
                for location in locations_of(event)
            )

    def _on_event(self, kind: int, rank: int) -> bool:
        """Whether GDB shall stop: it steps in a rank that leaves, by a breakpoint of its own that would leave too."""
        self._debugger.inferiors.forget_moment()
        self._events.tell(kind, rank)
        if self._is_anything_in_code():
            self._follow(kind, rank)
        return kind == BEFORE_PACK and self._ends_step(rank)

    def _follow(self, kind: int, rank: int) -> None:
        followers = self._followers
        if kind == BEFORE_COPIES:
            self._followers.give_back_shared()  # it may be copied now
            self.dprintfs.rest = True
            self._debugger.state().focus.take_out(self._debugger.moment(), inserted=True)
        elif kind == BEFORE_PACK:
            self._let_go(rank)
        elif kind in (AFTER_COPIES, AFTER_UNPACK) or (kind == CREATED and rank not in followers.ranks):
            followers.arrived(rank)
            if followers.stand_in_shared:
                self.synchronize()  # what turned out to be a copy is given back while GDB has it where it was
            self._have_focus()
            self.dprintfs.rest = False
            self.dprintfs.enable_again()
            self.dprintfs.have_changed()
            self.synchronize()
            followers.rest()
        self._debugger.inferiors.forget_moment()

    def _ends_step(self, rank: int) -> bool:
        """Once GDB stops, it takes out what it steps by."""
        region = self._debugger.moment().rank(rank).range
        stepping = isinstance(region, Region) and any(address in region for address in own_locations())
        if stepping:
            gdb.write(f"[Rank {rank} leaves this process, the step ends]\n")
        return stepping

    def _let_go(self, rank: int) -> None:
        """Take all that is ours out of a rank's copies."""
        self._followers.let_go(rank)
        focus, moment = self._debugger.state().focus, self._debugger.moment()
        if focus.rank == rank:
            focus.move(moment, self._first_here(moment), inserted=True)
            self.synchronize()

    def _first_here(self, moment: ProcessView) -> Optional[int]:
        return next((rank.rank for rank in moment.table.ranks if self._followers.is_here(rank)), None)

    def _have_focus(self) -> None:
        """Let GDB resolve what is pending: the symbols of one rank are enough, and more are too many.

        Of a breakpoint that stands in several copies GDB would test the condition with one and the same copy's globals.
        """
        focus, moment = self._debugger.state().focus, self._debugger.moment()
        if focus.rank is None or focus.has_originals(moment):
            rank = focus.rank if focus.rank is not None else self._first_here(moment)
            focus.move(moment, rank, inserted=True)

    def synchronize(self) -> None:
        """Have the selected inferior's ranks follow every user's breakpoint."""
        if is_core():
            return
        try:
            moment = self._debugger.moment()
        except RanklensError:
            return
        for user in filter(follows, gdb.breakpoints()):
            spare_data(moment, user)
            disable_stubs(user)
        self._followers.synchronize(moment)
        self._share_out()

    def _share_out(self) -> None:
        """What GDB can't test, in shared code or where several inferiors have ranks, is left to followers."""
        for life in self._lives.values():
            life.followers.share_out()
        if sum(bool(life.followers.ranks) for life in self._lives.values()) > 1:
            for user in filter(follows, gdb.breakpoints()):
                leave_to_followers(user)

    def _show_as_enabled(self) -> None:
        """What is left to followers GDB would list as disabled; not where it would be in memory, and stop a rank."""
        self.settle()
        if not always_inserted():
            for life in self._lives.values():
                life.followers.share_out(native=True)

    def changed(self, breakpoint: gdb.Breakpoint) -> None:
        """GDB tells that a breakpoint was made or changed: nothing is done before it is safe, and `settle` does it."""
        if follows(breakpoint):
            self.disabled_by_gdb.notice(breakpoint)
        if self._debugger.inferiors.is_moving:
            self._has_moved = True
            return
        if follows(breakpoint) and self._stand_for(breakpoint.number):
            self._hits.notice(breakpoint, self._native_rank(breakpoint))
        self._pending.add(breakpoint)

    def _before_move(self) -> None:
        for user in filter(follows, self._pending.changed):
            self._disabled.look(user)

    def _moved(self) -> None:
        """Symbols mean another rank."""
        moves = gdb.selected_inferior().num, self._debugger.state().focus.moves
        if moves != self._woken_after:
            self._woken_after = moves
            self._followers.wake()
        if not UsersCommands.wait:  # else before something runs
            self.dprintfs.enable_again()
        if self._has_moved:
            self._has_moved = False
            for user in filter(follows, gdb.breakpoints()):
                renew_condition(user)
            self._followers.disable_again(self._debugger.moment(), filter(follows, gdb.breakpoints()))
            self._share_out()
            self.settle()

    def _stand_for(self, number: int) -> bool:
        return any(life.followers.stand_for(number) for life in self._lives.values())

    def deleted(self, user: gdb.Breakpoint) -> None:
        """GDB tells that a breakpoint is no more."""
        for life in self._lives.values():
            life.followers.deleted(user.number)
        self._hits.forget(user.number)
        self._disabled.forget(user.number)
        self._enable_counts.forget(user.number)
        self._pending.delete(user.number)

    def settle(self) -> None:
        """Have ranks follow what GDB has told, where GDB is in the midst of nothing."""
        if self._settles:
            return
        self._settles = True
        try:
            self._bind()
            self._settle_dprintfs()
            self._enable_counts.tell()
            for _ in range(ROUNDS):  # what is done here GDB tells, too
                if not self._pending:
                    return
                changed, deleted = self._pending.take()
                for life in self._lives.values() if deleted else ():
                    life.followers.drop_of(deleted)
                for gdb_breakpoint in changed:
                    if gdb_breakpoint.is_valid():  # another one's turn may have ended it
                        self._settle_one(gdb_breakpoint)
        finally:
            self._settles = False

    def _settle_dprintfs(self) -> None:
        if self.dprintfs.have_changed():
            self.watch_events()
            for inferior in standing():
                with within(inferior.num):
                    self.synchronize()

    def _bind(self) -> None:
        """Keep ranks' breakpoints out of other inferiors, once there are any; an inferior may run meanwhile."""
        for inferior in gdb.inferiors() if len(gdb.inferiors()) > 1 else ():
            if inferior.num in self._lives:
                followers = self._lives[inferior.num].followers
                if followers.are_unbound:
                    with within(inferior.num):
                        followers.bind()

    def _settle_one(self, breakpoint: gdb.Breakpoint) -> None:
        try:
            self._changed(breakpoint)
        except KeyboardInterrupt:  # raised here nothing would catch it: one of ours is whole once this is done
            if follows(breakpoint):
                give_up(breakpoint)
            else:
                self._changed(breakpoint)

    def _changed(self, breakpoint: gdb.Breakpoint) -> None:
        if not follows(breakpoint):
            if catches_in_code(breakpoint):
                self.watch_events()
            self._warnings.check(breakpoint)
            return
        self.watch_events()
        self._enable_counts.learn(breakpoint)
        for inferior in standing():
            self._changed_in(inferior.num, breakpoint)

    def _native_rank(self, user: gdb.Breakpoint) -> Optional[int]:
        """The rank for which GDB itself counts a hit: the rank that runs, also in code that all ranks share."""
        if not self._hits.is_counted(user):
            return None
        try:
            return self._debugger.rank_that_runs()
        except (RanklensError, gdb.error):
            return None

    def _changed_in(self, inferior: int, user: gdb.Breakpoint) -> None:
        if self._life(inferior).followers.is_news(user):
            with within(inferior):
                self.spare_tasks()
                self.synchronize()

    def resumed(self) -> None:
        """Something is about to run: GDB tells it before it puts breakpoints into memory."""
        with uninterrupted():  # Ctrl-C stops what runs: it takes no breakpoint away
            self.hits.clear()
            self._life().hidden.resumed()
            self.dprintfs.enable_again()
            self.settle()
            self._share_out()
            for life in self._lives.values():
                life.followers.rest()
            self._hits.look()

    def forget(self, inferior: int) -> None:
        """Its process is gone."""
        life = self._lives.pop(inferior, None)
        if life is not None:
            life.forget()

    def renew(self) -> None:
        """Have GDB forget at which of our breakpoints it has stopped, and tell by `$_hit_bpnum` the user's."""
        if self._debugger.inferiors.are_several or (self.hits and not speaks_mi()):
            with suppress(gdb.error):
                self._followers.renew(gdb.newest_frame().pc())
        self.hits.set_variables()
