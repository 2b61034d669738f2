"""Internal breakpoints in ranks' copies, each in the name of a user's breakpoint: those of one inferior.

Takes users' breakpoints and rank tables; keeps a `Follower` at every place of a breakpoint in every rank that lives in
the inferior. It stops by the user's breakpoint's rules: condition, ignore count, thread, commands.

In code that ranks share, such as the MPI library's, GDB stops by itself; but a condition it would test with the names
of whichever rank has them at the moment. There one follower tests it with those of the rank that comes by.

GDB puts a breakpoint at an address into every inferior of which it reads symbols; ours stay in their own (`Pinned`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

import gdb

from gdbext.breakpoints import conditions
from gdbext.breakpoints.conditions import ranks_of
from gdbext.breakpoints.dprintf import Dprintf, Dprintfs
from gdbext.breakpoints.hit_counts import Hits
from gdbext.gdb_api import frame
from gdbext.gdb_api.internal_breakpoint import Pinned
from gdbext.gdb_api.language import follow_frame
from gdbext.gdb_api.locations import IN_MEMORY, Own, has_silent_commands, is_stub, locations_in, locations_of
from gdbext.gdb_api.momentary_breakpoints import is_stepping
from gdbext.gdb_api.run_gdb import DebuggerError, execute, quoted, uninterrupted, warnings
from gdbext.gdb_api.target import path_of
from gdbext.selection.debugger import GdbDebugger
from gdbext.symbols.focus import has_copy, is_copying
from pieglobalsfind.debugger.breakpoint_arguments import is_in
from pieglobalsfind.errors import RanklensError, TargetError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, Rank, Rebase
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.session import shared_memory_ranks
from pieglobalsfind.session.process_view import ProcessView

RANK_IN_FOCUS = r"\$_rank\b"

Key = tuple[int, int, int]  # the user's breakpoint, the rank, the address
SHARED = -1  # in place of the rank


@dataclass(frozen=True)
class CodePlace:
    """A place in the code of an object, the same in every copy."""

    object: int
    offset: int


@dataclass(frozen=True)
class Hit:
    """A stop in the name of a user's breakpoint; `where` is how GDB shows the place, "" if it can still be asked."""

    user: gdb.Breakpoint
    number: int
    rank: Optional[int]
    temporary: bool
    silent: bool
    where: str


class RankBreakpoints:
    """Those of one inferior; methods that take a moment are for when it is the selected one."""

    def __init__(
        self, face: GdbDebugger, inferior: int, on_hit: Callable[[Hit], None], hits: Hits, dprintfs: Dprintfs
    ) -> None:
        self._face = face
        self._dprintfs = dprintfs
        self._hits = hits
        self._inferior = inferior
        self._on_hit = on_hit
        self._standing: dict[Key, Follower] = {}
        self._followed: dict[int, frozenset[CodePlace]] = {}
        self._known: dict[int, object] = {}
        self._leaving: set[int] = set()
        self.ranks: set[int] = set()

    def synchronize(self, moment: ProcessView) -> None:
        """Have a follower of every user's breakpoint in every rank that lives here; quick when nothing changed."""
        self.ranks = {rank.rank for rank in moment.table.ranks} - self._leaving
        wanted = dict(self._wanted(moment))
        self._give_back(wanted)
        self.drop(lambda follower: follower.key not in wanted)
        for key, (user, address) in wanted.items():
            if key in self._standing:
                self._standing[key].user = user
            else:
                with uninterrupted():  # else GDB might have one of which nothing is known here
                    kind = DprintfFollower if isinstance(user, Dprintf) else Follower
                    self._standing[key] = kind(self._face, self._on_hit, self._hits, user, key, address)
                    self._standing[key].peers = self._at
        self.share_out()

    def share_out(self, native: bool = False) -> None:
        """Leave to followers where they stand in shared code: GDB does not test the condition there.

        GDB reports each change at once, and its handler may come here again.
        """
        for (_, rank, _), follower in list(self._standing.items()):
            if rank == SHARED:
                follower.leave(native)

    def give_back_shared(self) -> None:
        """Let GDB stop again by itself where followers stand in shared code, instead of these."""
        self._give_back(())
        self.drop(lambda follower: follower.key[1] == SHARED)

    def _give_back(self, wanted: Container[Key]) -> None:
        """Let GDB stop again by itself where followers stood in shared code that are not wanted any more."""
        for key, follower in list(self._standing.items()):
            if key[1] == SHARED and key not in wanted:
                follower.leave(native=True)

    def _wanted(self, moment: ProcessView) -> Iterator[tuple[Key, tuple[gdb.Breakpoint, int]]]:
        # Of a breakpoint in copies and in an original GDB would lose the place of the hit as symbols move.
        is_in_both = any(runs_original(rank, used) for rank in moment.table.ranks[:1] for used in moment.table.objects)
        users: list[Any] = [*filter(follows, gdb.breakpoints()), *self._dprintfs.known]
        for user in users:
            if user.enabled:
                means_rank = user.condition or user.commands or isinstance(user, Dprintf)  # the rank that comes by
                if means_rank or is_in_both:
                    for address in self._shared(moment, user):
                        yield (user.number, SHARED, address), (user, address)
                places = self._places(moment, user)
                only, _ = ranks_of(user.condition)
                for rank in moment.table.ranks:
                    if not self.is_here(rank) or (only and not is_in(rank.rank, only)):
                        continue
                    for placement in rank.placements:
                        if isinstance(placement, Rebase):
                            for place in places:
                                address = placement.copy + place.offset
                                if (
                                    place.object == placement.object
                                    and shared_memory_ranks.danger(moment, address) is None
                                ):
                                    yield (user.number, rank.rank, address), (user, address)

    def _places(self, moment: ProcessView, user: gdb.Breakpoint) -> frozenset[CodePlace]:
        """Where in copied objects a breakpoint stands; what it was while GDB has no symbols at hand."""
        found = set()
        for location in locations_in(user, self._inferior):
            owner = moment.translator.owner(location.address)
            if not location.enabled and is_stub(location.address):
                continue
            if owner.object is not None and moment.table.objects[owner.object].privatized:
                found.add(CodePlace(owner.object, owner.offset))
        if found or not user.pending:
            self._followed[user.number] = frozenset(found)
        return self._followed.get(user.number, frozenset())

    def _shared(self, moment: ProcessView, user: gdb.Breakpoint) -> Iterator[int]:
        """Where a breakpoint stands in code that ranks share."""
        for location in locations_in(user, self._inferior):
            address = location.address
            owner = moment.translator.owner(address)
            if (
                owner.rank is None
                and is_shared(moment, owner.object)
                and shared_memory_ranks.danger(moment, address) is None
            ):
                yield address

    def stand_for(self, number: int) -> bool:
        """Whether followers stand for a user's breakpoint here, or have before GDB forgot the places."""
        return bool(self._followed.get(number)) or any(key[0] == number for key in self._standing)

    @property
    def stand_in_shared(self) -> bool:
        """Return whether a breakpoint stands in code that ranks share."""
        return any(rank == SHARED for _, rank, _ in self._standing)

    def is_news(self, user: gdb.Breakpoint) -> bool:
        """Whether a user's breakpoint is not as it was when this was asked before."""
        addresses = tuple(one.address for one in locations_in(user, self._inferior))
        now = (user.enabled, user.commands, user.pending, user.condition, addresses)
        was = self._known.get(user.number)
        self._known[user.number] = now
        return was != now

    def _at(self, address: int) -> Iterator[Follower]:
        return (follower for follower in self._standing.values() if follower.address == address)

    def renew(self, pc: int) -> None:
        """Replace the followers where GDB has stopped: it goes on to tell their numbers by `$_hit_bpnum`.

        It puts them into several inferiors, and as symbols move would warn that it no longer knows at which of their
        locations it has stopped.
        """
        self._replace(lambda follower: follower.address == pc)

    @property
    def are_unbound(self) -> bool:
        """Return whether GDB would put some of them into other inferiors."""
        return any(not follower.is_bound for follower in self._standing.values())

    def bind(self) -> None:
        """Keep out of inferiors that are new what was made while there was one alone."""
        self._replace(lambda follower: not follower.is_bound)

    def _replace(self, which: Callable[[Follower], bool]) -> None:
        for key, old in list(self._standing.items()):
            if which(old):
                with uninterrupted():
                    self._standing[key] = old.renewed()
                    old.delete()

    def is_here(self, rank: Rank) -> bool:
        """Return whether a rank is in this process and stays."""
        return rank.state not in (EXITED, MIGRATED_OUT) and rank.rank not in self._leaving

    def let_go(self, rank: int) -> None:
        """Take all that is ours out of a rank's copies: its bytes leave for another process now."""
        self._leaving.add(rank)
        self.ranks.discard(rank)
        self.drop(lambda follower: follower.rank == rank)

    def arrived(self, rank: int) -> None:
        """The rank is (back) in this process."""
        self._leaving.discard(rank)

    def drop(self, which: Callable[[Follower], bool]) -> None:
        """Delete the breakpoints that `which` chooses."""
        for key in [key for key, follower in self._standing.items() if which(follower)]:
            follower = self._standing.pop(key)
            if follower.is_valid():
                follower.delete()

    def drop_of(self, numbers: Container[int]) -> None:
        """Take out those of users' breakpoints that are no more."""
        self.drop(lambda follower: follower.key[0] in numbers)

    def deleted(self, number: int) -> None:
        """A user's breakpoint is no more; its followers are still there."""
        self._followed.pop(number, None)
        self._known.pop(number, None)

    def forget(self) -> None:
        """The process is gone."""
        self.drop(lambda follower: True)
        self._followed.clear()
        self._known.clear()
        self._leaving.clear()
        self.ranks.clear()


class Follower(Pinned):
    """Stands in one rank's copy for a user's breakpoint."""

    def __init__(
        self,
        face: GdbDebugger,
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
        self._face = face
        self.user: Any = user  # the breakpoint or dprintf that this one stands for
        self.is_silenced = False
        self.peers: Callable[[int], Iterator[Follower]] = lambda address: iter(())
        self._came_first = False  # before the symbols, which a peer has moved to the rank in the same stop

    def renewed(self) -> Follower:
        """Return a new breakpoint of GDB's at the same place."""
        follower = type(self)(self._face, self._on_hit, self._hits, self.user, self.key, self.address)
        follower.peers = self.peers
        return follower

    def leave(self, native: bool) -> None:
        """Leave it to GDB itself to stop here, or take it from GDB."""
        for one in locations_in(self.user, self.home) if self.user.is_valid() else ():
            if one.address == self.address and bool(one.enabled) != native:
                one.enabled = native

    def _adopt_commands(self) -> None:
        """What GDB does once it has stopped: it takes them after it has asked `stop`."""
        self.commands = self.user.commands or ""

    def stop(self) -> bool:
        """Whether the user's breakpoint stops here; inside GDB's handling of the stop."""
        is_interrupted = False
        self.is_silenced = False
        try:
            if not self._is_meant():
                return self._stops_for_a_change()
        except KeyboardInterrupt:  # so does GDB where Ctrl-C comes while it tests a condition
            is_interrupted = True
            self._tell_error("Quit")
        with suppress(KeyboardInterrupt), uninterrupted():
            if self._is_ignored() and not is_interrupted:
                return False
            self._on_hit(self._hit())
            self._adopt_commands()
        return True

    def _stops_for_a_change(self) -> bool:
        """Whether GDB misses what a watchpoint is for, because symbols have moved; not by the user's commands then."""
        if not self._face.watches.changes.unseen:
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
                self.rank = self._face.rank_that_runs()
            if only is not None and (self.rank is None or not is_in(self.rank, only)):
                return False
            if hasattr(user, "stop"):  # a user's class of breakpoints; GDB allows it no other condition
                return self._says_stop()
            return condition is None or self._is_true(condition)
        except (gdb.error, RanklensError) as error:
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
        silent = has_silent_commands(user)
        where = self._where() if user.commands and not silent else ""
        return Hit(user, user.number, self.rank, bool(user.temporary), silent, where)

    def _where(self) -> str:
        """What GDB prints of the place at a stop.

        With commands it is printed now: after GDB has stopped, each command that it executes for us makes
        it execute the user's before.
        """
        line = frame.line_of(gdb.newest_frame())
        sal = gdb.newest_frame().find_sal()
        if sal.symtab is None:
            return f"{line}\n"
        try:
            source = execute(f"list {quoted(path_of(sal.symtab))}:{sal.line},{sal.line}")
        except DebuggerError:
            from pieglobalsfind.shell.escape import escape

            source = f"{sal.line}\tin {escape(path_of(sal.symtab))}\n"
        return f"{line}\n{source}"

    def _is_native(self) -> bool:
        """Whether GDB had a location of the user's breakpoint here as the rank came by, and stops by itself."""
        came_first, self._came_first = self._came_first, False
        return not came_first and any(
            one.enabled and one.address == self.address for one in locations_in(self.user, self.home)
        )

    def _is_thread(self) -> bool:
        wanted = self.user.thread
        return wanted is None or wanted == gdb.selected_thread().global_num

    def _is_true(self, condition: str) -> bool:
        """The condition with the rank's own globals and the frame's locals.

        While another rank steps, its symbols stay: GDB knows the step's end by them.
        """
        focus = self._face.state().focus
        if self.rank is not None and focus.rank not in (None, self.rank) and is_stepping():
            return conditions.is_true(focus, self._face.moment(), self.rank, condition)
        self._move_symbols()
        follow_frame()
        return bool(gdb.parse_and_eval(condition))

    def _says_stop(self) -> bool:
        """What the user's own `stop` method says; an error in it stops, as in GDB."""
        stepping = self._face.state().focus.rank
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
        focus = self._face.state().focus
        if focus.rank != self.rank:
            for peer in self.peers(self.address):
                peer._came_first = peer.number < self.number
        focus.move(self._face.moment(), self.rank, inserted=True)


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


def is_shared(moment: ProcessView, number: Optional[int]) -> bool:
    """Whether all ranks use one copy of an object, now and later; None is none of the program's."""
    if number is None or not moment.table.objects[number].privatized:
        return True
    if is_copying(moment):
        return False
    first = moment.table.ranks[0]
    return not has_copy(moment, number, first.rank) or runs_original(first, moment.table.objects[number])


def follows(breakpoint: Any) -> bool:
    """Whether it is a user's breakpoint on code, be it one that GDB does not show; not the end of one call."""
    if not breakpoint.is_valid() or breakpoint.type not in IN_MEMORY:
        return False
    return not isinstance(breakpoint, (Own, gdb.FinishBreakpoint))


def is_in_data(moment: ProcessView, address: int) -> bool:
    """Whether an address lies in an object's variables: GDB takes symbols of variables in views for functions."""
    owner = moment.translator.owner(address)
    segments = moment.table.objects[owner.object].segments if owner.object is not None else ()
    code = (segment for segment in segments if segment.executable)
    return bool(segments) and not any(one.offset <= owner.offset < one.offset + one.memory_size for one in code)


def catches_in_code(breakpoint: Any) -> bool:
    """Whether it is a user's `catch throw` or the like: in a library's code, unlike `catch syscall`.

    GDB 12 tells Python of none.
    """
    if not breakpoint.is_valid() or breakpoint.type != getattr(gdb, "BP_CATCHPOINT", None):
        return False
    return bool(breakpoint.pending) or any(one.address for one in locations_of(breakpoint))


def is_anything_in_code() -> bool:
    """Whether the user has breakpoints, dprintfs apart, for which symbols have to move in time while ranks are made."""
    return any(follows(gdb_breakpoint) or catches_in_code(gdb_breakpoint) for gdb_breakpoint in gdb.breakpoints())


def leave_to_followers(user: gdb.Breakpoint) -> None:
    """Where several inferiors have ranks, GDB can't tell in a condition whose `$_rank` is meant; followers can."""
    if user.condition and re.search(RANK_IN_FOCUS, user.condition) and ranks_of(user.condition)[1]:
        for one in locations_of(user):
            if one.enabled:
                one.enabled = False
