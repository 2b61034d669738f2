"""The ranks of a table, made from their records one by one as they are asked for.

Takes what is known of all of them at once, and how one is made. A debugger that stops asks for the one rank that runs
on its thread: to make a thousand for it would take longer than all else that it does then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional, Union, overload

from pieglobalsfind.model import MIGRATED_OUT, Rank, Rebase, Region

Extent = tuple[int, int]  # start, end
NOWHERE = (0, 0)


class Columns(NamedTuple):
    """What is asked of all ranks at once, in the order of the ranks.

    `stacks` are `NOWHERE` of ranks whose stack is unknown or elsewhere; `copies` are the addresses of all ranks' copies
    of objects, ascending; `address_spaces` are the processes that ranks' pages are read through, where they are others.
    """

    numbers: Sequence[int]
    stacks: Sequence[Extent]
    copies: Sequence[int]
    address_spaces: frozenset[int]


class RanksOnDemand(Sequence[Rank]):
    """Equal to a tuple of the same ranks; `make` makes the one of an index."""

    def __init__(
        self, columns: Columns, make: Callable[[int], Rank], made: Optional[Mapping[int, Rank]] = None
    ) -> None:
        self.columns = columns
        self._make = make
        self._made = dict(made or {})
        self._whole: Optional[tuple[Rank, ...]] = None

    def __len__(self) -> int:
        return len(self.columns.numbers)

    @overload
    def __getitem__(self, index: int) -> Rank: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Rank, ...]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Rank, tuple[Rank, ...]]:
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(len(self))[index]))
        index = range(len(self))[index]
        rank = self._made.get(index)
        if rank is None:
            rank = self._made[index] = self._make(index)
        return rank

    def __iter__(self) -> Iterator[Rank]:
        if self._whole is None:
            self._whole = self[:]
        return iter(self._whole)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (tuple, RanksOnDemand)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (tuple(self),)

    def changed(self, changes: Mapping[int, Rank]) -> RanksOnDemand:
        """The same ranks but for some, by their indices; what the columns say of those is as before."""
        later = RanksOnDemand(self.columns, self._make, {**self._made, **changes})
        if self._whole is not None:
            later._whole = tuple(changes.get(index, rank) for index, rank in enumerate(self._whole))
        return later


def columns_of(ranks: Sequence[Rank]) -> Columns:
    """What is asked of all of them at once, whatever they are in."""
    if isinstance(ranks, RanksOnDemand):
        return ranks.columns
    copies = (part for rank in ranks for part in rank.placements if isinstance(part, Rebase))
    return Columns(
        tuple(rank.rank for rank in ranks),
        [_extent(rank) for rank in ranks],
        sorted(copy.copy for copy in copies if copy.object is not None),
        frozenset(rank.address_space for rank in ranks) - {0},
    )


def _extent(rank: Rank) -> Extent:
    if isinstance(rank.stack, Region) and rank.state != MIGRATED_OUT:
        return rank.stack.start, rank.stack.end
    return NOWHERE


def with_changes(ranks: Sequence[Rank], changes: Mapping[int, Rank]) -> Sequence[Rank]:
    """The ranks with those of some indices replaced, which stay where they were."""
    if isinstance(ranks, RanksOnDemand):
        return ranks.changed(changes)
    return tuple(changes.get(index, rank) for index, rank in enumerate(ranks))
