"""The life cycle of users' breakpoints among copies of code: hit in every rank, copied into none.

Takes GDB's breakpoints and the runtime's events (`rank_debug_event`). GDB itself resolves a user's breakpoint where the
symbols in focus are; for every other rank there is a `Follower`, an internal breakpoint at the same place of that
rank's copy, which stops in the user's breakpoint's name and by its rules: condition, ignore count, thread, commands.
One file of symbols then serves any number of ranks.

Before the runtime copies an object no breakpoint is left in it: a copied int3 would trap where GDB knows of none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

import gdb

from gdbext.face import ADDRESS, GdbFace
from gdbext.focus import IN_MEMORY
from gdbext.quiet import execute, warnings
from gdbext.stops import RankEvents, ranks_of
from gdbext.target import connection_kind
from pieglobalsfind import tasks
from pieglobalsfind.command import Moment
from pieglobalsfind.decoders import ampi_events
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, Rank, RankTable, Rebase, Region
from pieglobalsfind.render import escape
from pieglobalsfind.stop_request import is_in

EVENT_FUNCTION = "rank_debug_event"
OWN_LOCATION = re.compile(r"(?:-\d+|0)(?:\.\d+)? .*?\b(0x[0-9a-f]{16})\b")  # users' have positive numbers
BEFORE_COPIES, AFTER_COPIES, CREATED, BEFORE_PACK, AFTER_UNPACK, RANK_EXITED = range(1, 7)  # rank_debug.h


@dataclass(frozen=True)
class Place:
    """A place in the code of an object, the same in every copy."""

    object: int
    offset: int


class Breakpoints:
    """All followers of one GDB, and how they come and go."""

    def __init__(self, face: GdbFace, events: RankEvents) -> None:
        self._face = face
        self._events = events
        self._event: Optional[EventBreakpoint] = None
        self._calls = ampi_events.Calls()
        self._call_breakpoints: list[CallBreakpoint] = []
        self._followers: dict[tuple[int, int, int], Follower] = {}
        self._followed: dict[int, frozenset[Place]] = {}
        self._known: dict[int, object] = {}
        self._ranks: set[int] = set()
        self._leaving: set[int] = set()
        self._orphaned: set[int] = set()
        self._inferior: Optional[int] = None
        self._has_told_of_others = False
        self.hit: Optional[Hit] = None

    def watch_events(self) -> None:
        """Break on the runtime's events as soon as the function is there."""
        if self._event is None and function_exists(EVENT_FUNCTION):
            self._event = EventBreakpoint(self._on_event)
            self.spare_tasks()
        self._watch_calls()

    def _watch_calls(self) -> None:
        """AMPI without a hook: break on functions of its own, at their first instruction, once the process is there."""
        inferior = gdb.selected_inferior()
        if self._call_breakpoints or self._event is not None or not inferior.pid or connection_kind(inferior) == "core":
            return
        places = [(name, function_address(name)) for name in ampi_events.FUNCTIONS]
        if all(address and is_mapped(inferior, address) for _, address in places):
            self._calls = ampi_events.Calls()
            self._call_breakpoints = [CallBreakpoint(name, address, self._on_call) for name, address in places]

    def _watch_return(self, pointer: int) -> None:
        """Break where a call returns to, at its first instruction: the word at the stack pointer."""
        if not any(one.function == ampi_events.RETURNED for one in self._call_breakpoints):
            address = int.from_bytes(gdb.selected_inferior().read_memory(pointer, 8), "little")
            self._call_breakpoints.append(CallBreakpoint(ampi_events.RETURNED, address, self._on_call))

    def _on_call(self, function: str, arguments: tuple[int, int, int]) -> bool:
        if not any(map(follows, gdb.breakpoints())) and not self._events.is_on:
            return False
        self._face.state().moment = None

        def table() -> RankTable:
            return self._face.moment().table

        if function == ampi_events.ARRIVED:
            self._watch_return(arguments[2])
        event = self._calls.event(self._face.moment().target, table, function, arguments, self._ranks)
        return event is not None and self._on_event(*event)

    def spare_tasks(self) -> None:
        """Take out what would kill a process that GDB is not attached to (tasks.py)."""
        try:
            moment = self._face.moment()
        except RanklensError:
            return
        if not any(map(tasks.is_task, moment.table.ranks)):
            return
        for user in filter(follows, gdb.breakpoints()):
            self._spare(moment, user)
        self._drop(lambda follower: tasks.danger(moment, follower.address) is not None)
        event = self._event
        if event is not None and event.enabled:
            event.enabled = all(tasks.danger(moment, one.address) is None for one in event.locations)

    def _spare(self, moment: Moment, user: gdb.Breakpoint) -> None:
        locations = user.locations if user.enabled and not user.pending else ()
        why = next(filter(None, (tasks.danger(moment, one.address) for one in locations)), None)
        if why is not None:
            user.enabled = False
            gdb.write(f"[Breakpoint {user.number} is disabled, {why}]\n")

    def _on_event(self, kind: int, rank: int) -> bool:
        """Whether GDB shall stop: it steps in a rank that leaves, by a breakpoint of its own that would leave too."""
        state = self._face.state()
        state.moment = None
        self._events.tell(kind, rank)
        if any(map(follows, gdb.breakpoints())):
            self._follow(kind, rank)
        return kind == BEFORE_PACK and self._ends_step(rank)

    def _follow(self, kind: int, rank: int) -> None:
        state = self._face.state()
        if kind == BEFORE_COPIES:
            state.focus.take_out(self._face.moment(), inserted=True)
        elif kind == BEFORE_PACK:
            self._let_go(rank)
        elif kind in (AFTER_COPIES, AFTER_UNPACK) or (kind == CREATED and rank not in self._ranks):
            self._leaving.discard(rank)
            self._have_focus()
            self.synchronize()
        state.moment = None

    def _ends_step(self, rank: int) -> bool:
        """Once GDB stops, it takes out what it steps by."""
        region = self._face.moment().rank(rank).range
        stepping = isinstance(region, Region) and any(address in region for address in own_locations())
        if stepping:
            gdb.write(f"[Rank {rank} leaves this process, the step ends]\n")
        return stepping

    def _let_go(self, rank: int) -> None:
        """Take all that is ours out of a rank's copies: its bytes leave for another process now."""
        self._leaving.add(rank)
        self._ranks.discard(rank)
        self._drop(lambda follower: follower.rank == rank)
        focus, moment = self._face.state().focus, self._face.moment()
        if focus.rank == rank:
            focus.move(moment, self._first_here(moment), inserted=True)
            self.synchronize()

    def _first_here(self, moment: Moment) -> Optional[int]:
        return next((one.rank for one in moment.table.ranks if self._is_here(one)), None)

    def _is_here(self, rank: Rank) -> bool:
        return rank.state not in (EXITED, MIGRATED_OUT) and rank.rank not in self._leaving

    def _have_focus(self) -> None:
        """Let GDB resolve what is pending: the symbols of one rank are enough."""
        focus, moment = self._face.state().focus, self._face.moment()
        if focus.rank is None:
            focus.move(moment, self._first_here(moment), inserted=True)

    def synchronize(self) -> None:
        """Have a follower of every user's breakpoint in every rank that lives here; quick when nothing changed."""
        try:
            moment = self._face.moment()
        except RanklensError:
            return
        if moment.table.ranks and not self._is_followed():
            return
        self._ranks = {one.rank for one in moment.table.ranks} - self._leaving
        wanted = dict(self._wanted(moment))
        self._drop(lambda follower: follower.key not in wanted)
        for key, (user, address) in wanted.items():
            if key not in self._followers:
                self._followers[key] = Follower(self, self._face, user, key, address)
            self._followers[key].adopt_commands()

    def _is_followed(self) -> bool:
        """Whether the selected inferior is the one whose ranks breakpoints follow: the first that had any."""
        number = gdb.selected_inferior().num
        alive = {one.num for one in gdb.inferiors() if one.pid}
        if self._inferior is None or self._inferior not in alive:
            self._inferior = number
        if self._inferior != number and not self._has_told_of_others:
            self._has_told_of_others = True
            gdb.write(
                f"warning: breakpoints follow the ranks of inferior {self._inferior}, not those of {number}: "
                "debug each process in a GDB of its own\n",
                gdb.STDERR,
            )
        return self._inferior == number

    def _wanted(self, moment: Moment) -> Iterator[tuple[tuple[int, int, int], tuple[gdb.Breakpoint, int]]]:
        for user in gdb.breakpoints():
            if follows(user) and user.enabled:
                places = self._places(moment, user)
                only, _ = ranks_of(user.condition)
                for rank in moment.table.ranks:
                    if not self._is_here(rank) or (only and not is_in(rank.rank, only)):
                        continue
                    for one in rank.placements:
                        if isinstance(one, Rebase):
                            for place in places:
                                address = one.copy + place.offset
                                if place.object == one.object and tasks.danger(moment, address) is None:
                                    yield (user.number, rank.rank, address), (user, address)

    def _places(self, moment: Moment, user: gdb.Breakpoint) -> frozenset[Place]:
        """Where in copied objects a breakpoint stands; what it was while GDB has no symbols at hand."""
        found = set()
        for location in user.locations if not user.pending else ():
            owner = moment.translator.owner(location.address)
            if owner.object is not None and moment.table.objects[owner.object].privatized:
                found.add(Place(owner.object, owner.offset))
        if found or not user.pending:
            self._followed[user.number] = frozenset(found)
        return self._followed.get(user.number, frozenset())

    def _drop(self, which: Callable[[Follower], bool]) -> None:
        for key in [key for key, follower in self._followers.items() if which(follower)]:
            follower = self._followers.pop(key)
            if follower.is_valid():
                follower.delete()

    def forget(self) -> None:
        """The process is gone."""
        for one in self._call_breakpoints:
            if one.is_valid():
                one.delete()
        self._call_breakpoints.clear()
        self._drop(lambda follower: True)
        self._followed.clear()
        self._known.clear()
        self._ranks.clear()
        self._leaving.clear()

    def changed(self, user: gdb.Breakpoint) -> None:
        """A breakpoint was made or changed: by the user, by a hit, or because symbols moved."""
        if not follows(user) or self._face.state().focus.moving:
            return
        self.settle()
        now = (user.enabled, user.commands, user.pending, user.condition, tuple(one.address for one in user.locations))
        if self._known.get(user.number) != now:
            self._known[user.number] = now
            self.spare_tasks()
            self.synchronize()

    def deleted(self, user: gdb.Breakpoint) -> None:
        number = user.number
        self._followed.pop(number, None)
        self._known.pop(number, None)
        self._orphaned.add(number)

    def settle(self) -> None:
        """Take out the followers of deleted breakpoints.

        Not when GDB tells of the deletion: `delete` goes through GDB's list, and has the next one in hand.
        """
        orphaned, self._orphaned = self._orphaned, set()
        if orphaned:
            self._drop(lambda follower: follower.key[0] in orphaned)

    def tell_hit(self) -> None:
        """After a stop: say what was hit, as GDB would."""
        hit, self.hit = self.hit, None
        if hit is None:
            return
        if not hit.silent:
            kind = "Temporary breakpoint" if hit.temporary else "Breakpoint"
            where = gdb.execute("frame", to_string=True).partition("  ")[2]
            gdb.write(f"\nRank {hit.rank} hit {kind} {hit.number}, {where}")
        if hit.temporary and hit.user.is_valid():
            hit.user.delete()


@dataclass(frozen=True)
class Hit:
    """A stop in the name of a user's breakpoint."""

    user: gdb.Breakpoint
    number: int
    rank: int
    temporary: bool
    silent: bool


class Follower(gdb.Breakpoint):
    """Stands in one rank's copy for a user's breakpoint."""

    def __init__(
        self, owner: Breakpoints, face: GdbFace, user: gdb.Breakpoint, key: tuple[int, int, int], address: int
    ) -> None:
        super().__init__(f"*{address:#x}", type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.key = key
        self.rank = key[1]
        self.address = address
        self._owner = owner
        self._face = face
        self._user = user

    def adopt_commands(self) -> None:
        wanted = self._user.commands
        if self.commands != wanted:
            self.commands = wanted

    def stop(self) -> bool:
        """Whether the user's breakpoint stops here; inside GDB's handling of the stop."""
        user = self._user
        if not user.is_valid() or not user.enabled or self._is_native() or not self._is_thread():
            return False
        only, condition = ranks_of(user.condition)
        try:
            if only is not None and not is_in(self.rank, only):
                return False
            if condition is not None and not self._is_true(condition):
                return False
        except (gdb.error, RanklensError) as error:
            gdb.write(f"Error in testing condition for breakpoint {user.number}:\n{escape(str(error))}\n")
        if user.ignore_count > 0:
            user.ignore_count -= 1
            return False
        silent = (user.commands or "").split("\n")[0].strip() == "silent" or bool(user.silent)
        self._owner.hit = Hit(user, user.number, self.rank, bool(user.temporary), silent)
        return True

    def _is_native(self) -> bool:
        """Whether GDB has a location of the user's breakpoint here, and stops by itself."""
        return any(one.enabled and one.address == self.address for one in self._user.locations)

    def _is_thread(self) -> bool:
        wanted = self._user.thread
        return wanted is None or wanted == gdb.selected_thread().global_num

    def _is_true(self, condition: str) -> bool:
        """The condition with the rank's own globals and the frame's locals."""
        face = self._face
        face.state().focus.move(face.moment(), self.rank, inserted=True)
        return bool(gdb.parse_and_eval(condition))


class EventBreakpoint(gdb.Breakpoint):
    """On the runtime's empty function; stops only where a step can't go on."""

    def __init__(self, handler: Callable[[int, int], bool]) -> None:
        super().__init__(EVENT_FUNCTION, internal=True)
        self.silent = True
        self._handler = handler

    def stop(self) -> bool:
        frame = gdb.newest_frame()
        kind, rank = (int(frame.read_register(name)) & 0xFFFFFFFF for name in ("rdi", "rsi"))
        with warnings("breakpoints in ranks may be missing"):
            return self._handler(kind, rank - (1 << 32) if rank >> 31 else rank)
        return False


class CallBreakpoint(gdb.Breakpoint):
    """On the first instruction of a function of AMPI's; stops only where a step can't go on."""

    def __init__(self, function: str, address: int, handler: Callable[[str, tuple[int, int, int]], bool]) -> None:
        super().__init__(f"*{address:#x}", type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.function = function
        self._handler = handler

    def stop(self) -> bool:
        frame = gdb.newest_frame()
        first, second, pointer = (int(frame.read_register(name)) % ADDRESS for name in ("rdi", "rsi", "rsp"))
        with warnings("breakpoints in ranks may be missing"):
            return self._handler(self.function, (first, second, pointer))
        return False


def follows(breakpoint: Any) -> bool:
    """Whether it is a user's breakpoint on code."""
    return bool(breakpoint.is_valid() and breakpoint.visible and breakpoint.type in IN_MEMORY)


def is_mapped(inferior: gdb.Inferior, address: int) -> bool:
    """Whether there is memory: GDB knows symbols before it knows where the system has put their file."""
    try:
        return len(inferior.read_memory(address, 1)) == 1
    except gdb.error:
        return False


def function_address(name: str) -> int:
    """Where a function begins, 0 if there is none."""
    try:
        return int(gdb.parse_and_eval(f"(unsigned long) &{name}"))
    except gdb.error:
        return 0


def own_locations() -> Iterator[int]:
    """Where GDB has breakpoints of its own: the ends of step, next, finish, until and advance."""
    for line in execute("maint info breakpoints").splitlines():
        found = OWN_LOCATION.match(line)
        if found is not None:
            yield int(found[1], 16)


def function_exists(name: str) -> bool:
    try:
        gdb.parse_and_eval(f"&{name}")
    except gdb.error:
        return False
    return True
