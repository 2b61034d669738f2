"""Internal breakpoints in ranks' copies, each in the name of a user's breakpoint: those of one inferior.

Takes users' breakpoints and rank tables; keeps a `Follower` at every place of a breakpoint in every rank that lives in
the inferior. It stops by the user's breakpoint's rules: condition, ignore count, thread, commands.

In code that ranks share, such as the MPI library's, GDB stops by itself; but a condition it would test with the names
of whichever rank has them at the moment. There one follower tests it with those of the rank that comes by.

GDB puts a breakpoint at an address into every inferior of which it reads symbols; ours stay in their own
(`InferiorBreakpoint`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import gdb

from gdbext.breakpoints.disabled_places import CodePlace, DisabledPlaces
from gdbext.breakpoints.evaluate_condition import ranks_of
from gdbext.breakpoints.followed_breakpoints import follows, is_in_data, is_shared
from gdbext.breakpoints.follower_breakpoint import SHARED, DprintfFollower, Follower, Hit, Key
from gdbext.breakpoints.hit_counts import Hits
from gdbext.breakpoints.listed_dprintfs import Dprintf, Dprintfs
from gdbext.gdb_api.breakpoint_locations import Location, is_stub, locations_in
from gdbext.gdb_api.run_commands import uninterrupted
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.debugger.breakpoint_arguments import is_in
from pieglobalsfind.model import EXITED, MIGRATED_OUT, Rank, Rebase
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.session import breakpoints_in_shared_memory
from pieglobalsfind.session.process_view import ProcessView


class InferiorFollowers:
    """Those of one inferior; methods that take a moment are for when it is the selected one."""

    def __init__(
        self,
        debugger: GdbDebugger,
        inferior: int,
        on_hit: Callable[[Hit], None],
        hits: Hits,
        dprintfs: Dprintfs,
        disabled: DisabledPlaces,
    ) -> None:
        self._debugger = debugger
        self._disabled = disabled
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
                    self._standing[key] = kind(self._debugger, self._on_hit, self._hits, user, key, address)
                    self._standing[key].peers = self._at
        self.share_out()

    def share_out(self, native: bool = False) -> None:
        """Leave to followers where they stand in shared code: GDB does not test the condition there.

        GDB reports each change at once, and its handler may come here again.
        """
        for (_, rank, _), follower in list(self._standing.items()):
            if rank == SHARED:
                follower.leave(native)

    def rest(self) -> None:
        """Before something runs: where GDB stops by itself no follower has to, whose number GDB would name, too."""
        native: dict[int, set[int]] = {}
        for follower in self._standing.values():
            number = follower.user.number
            if number not in native:
                native[number] = set(follower.native_addresses())
            follower.rest(follower.address in native[number])

    def wake(self) -> None:
        """Symbols have moved: GDB no longer stops by itself where it did."""
        for follower in self._standing.values():
            follower.rest(False)

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
                                    and breakpoints_in_shared_memory.danger(moment, address) is None
                                ):
                                    yield (user.number, rank.rank, address), (user, address)

    def _places(self, moment: ProcessView, user: gdb.Breakpoint) -> frozenset[CodePlace]:
        """Where in copied objects a breakpoint stands; what it was while GDB has no symbols at hand.

        A place that the user has disabled is none.
        """
        located = list(self._in_copies(moment, user))
        self._disabled.learn(user, self._inferior, located)
        if located or not user.pending:
            enabled = (place for place, _ in located if not self._disabled.has(user, place))
            self._followed[user.number] = frozenset(enabled)
        return self._followed.get(user.number, frozenset())

    def _in_copies(self, moment: ProcessView, user: gdb.Breakpoint) -> Iterator[tuple[CodePlace, Location]]:
        """Yield a breakpoint's locations in copied objects, but for the linker's stubs and for data."""
        for location in locations_in(user, self._inferior):
            owner = moment.translator.owner(location.address)
            if (not location.enabled and is_stub(location.address)) or is_in_data(moment, location.address):
                continue
            if owner.object is not None and moment.table.objects[owner.object].privatized:
                yield CodePlace(owner.object, owner.offset, moment.table.objects[owner.object].path), location

    def disable_again(self, moment: ProcessView, users: Iterable[gdb.Breakpoint]) -> None:
        """Symbols have moved: disable what the user had disabled and GDB has not."""
        for user in users:
            located = list(self._in_copies(moment, user))
            for place, location in located:
                if location.enabled and self._disabled.has(user, place):
                    location.enabled = False
            self._disabled.learn(user, self._inferior, located)

    def _shared(self, moment: ProcessView, user: gdb.Breakpoint) -> Iterator[int]:
        """Where a breakpoint stands in code that ranks share."""
        for location in locations_in(user, self._inferior):
            address = location.address
            owner = moment.translator.owner(address)
            if (
                owner.rank is None
                and is_shared(moment, owner.object)
                and breakpoints_in_shared_memory.danger(moment, address) is None
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
        shared = {address for number, rank, address in self._standing if number == user.number and rank == SHARED}
        locations = tuple(
            (location.address, bool(location.enabled) or location.address in shared)  # followers switch these
            for location in locations_in(user, self._inferior)
        )
        now = (user.enabled, user.commands, user.pending, user.condition, locations)
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
