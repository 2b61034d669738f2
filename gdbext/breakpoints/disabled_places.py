"""Keeps which places of a breakpoint the user has disabled alone (`disable 1.2`): for every rank, and for the next run.

Takes locations in ranks' copies; gives places in objects' files. GDB forgets it where symbols move, if functions of one
name are at several places, and where the program runs again. It would also be about one rank's copy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import gdb

from gdbext.breakpoints.followed_breakpoints import names_rank_in_focus
from gdbext.gdb_api.breakpoint_locations import Location, locations_of

Key = tuple[str, int]  # an object's file and an offset, which are the same in the next run


@dataclass(frozen=True)
class CodePlace:
    """A place in the code of an object, the same in every copy."""

    object: int
    offset: int
    path: str

    @property
    def key(self) -> Key:
        """What identifies it in the next run, too."""
        return self.path, self.offset


class DisabledPlaces:
    """By the numbers of users' breakpoints, in all inferiors."""

    def __init__(self) -> None:
        self._places: dict[int, set[Key]] = {}
        # By inferior and address: where locations are, once GDB has what was disabled before.
        self._located: dict[int, dict[tuple[int, int], Key]] = {}

    def has(self, user: gdb.Breakpoint, place: CodePlace) -> bool:
        """Return whether the user has disabled a breakpoint at a place."""
        return place.key in self._places.get(user.number, ())

    def learn(self, user: gdb.Breakpoint, inferior: int, located: Sequence[tuple[CodePlace, Location]]) -> None:
        """Note a breakpoint's locations in copies. A new one that is enabled says nothing: GDB may have forgotten."""
        self.look(user)
        if not is_left_to_followers(user):
            disabled = {place.key for place, location in located if not location.enabled}
            self._places.setdefault(user.number, set()).update(disabled)
        others = {key: value for key, value in self._located.get(user.number, {}).items() if key[0] != inferior}
        here = {(inferior, location.address): place.key for place, location in located}
        self._located[user.number] = {**others, **here}

    def look(self, user: gdb.Breakpoint) -> None:
        """Note what the user has enabled and disabled since `learn`, at locations that are still where they were."""
        located = {} if is_left_to_followers(user) else self._located.get(user.number, {})
        for location in locations_of(user) if located else ():
            for inferior in location.thread_groups:
                key = located.get((inferior, location.address))
                if key is not None:
                    (set.discard if location.enabled else set.add)(self._places[user.number], key)

    def begin(self, users: Iterable[gdb.Breakpoint]) -> None:
        """Before the program is run: locations come anew, perhaps to the same addresses."""
        for user in users:
            self.look(user)
        self._located.clear()

    def forget(self, number: int) -> None:
        """Note that a breakpoint was deleted."""
        self._places.pop(number, None)
        self._located.pop(number, None)


def is_left_to_followers(user: gdb.Breakpoint) -> bool:
    """Return whether `leave_to_followers` may have disabled a breakpoint's locations, and not the user."""
    return len(gdb.inferiors()) > 1 and names_rank_in_focus(user)
