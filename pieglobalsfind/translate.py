"""Whose is an address, and where is a rank's copy of one: the rank table as one sorted table of intervals.

Takes a `RankTable` and the memory map; pure arithmetic, reads nothing. Symbols are not its business.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import MIGRATED_OUT, Object, Owner, Rank, RankTable, Rebase, Redirect, Region, Segment, TlsBlock
from pieglobalsfind.target import MemoryMapping


@dataclass(frozen=True)
class Interval:
    """[start, end) belongs to `owner`; `original` is what debug information calls `start`."""

    start: int
    end: int
    owner: Owner
    original: int
    base: int


def kind_of(segment: Segment) -> str:
    if segment.executable:
        return "code"
    return "data" if segment.writable else "rodata"


class Translator:
    """Answers for one moment of one target."""

    def __init__(self, table: RankTable, maps: Sequence[MemoryMapping]) -> None:
        self._table = table
        self._maps = maps
        self._map_starts = [one.start for one in maps]
        self._copies = {
            (rank.rank, one.object): one.copy
            for rank in table.ranks
            for one in rank.placements
            if isinstance(one, Rebase) and one.object is not None
        }
        parts = sorted(self._parts(), key=lambda one: one.start)
        self._parts_sorted = parts
        self._starts = [one.start for one in parts]
        ranges = sorted((one.range.start, one.range.end, one.rank) for one in table.ranks if isinstance(one.range, Region))
        self._ranges = ranges
        self._range_starts = [one[0] for one in ranges]

    def _parts(self) -> Iterator[Interval]:
        for one in self._table.objects:
            yield from self._object_parts(one, None, one.base)
        if self._table.constructor_heap is not None:
            heap = self._table.constructor_heap
            owner = Owner(0, "original", reason="it is the heap of the originals' constructors")
            yield Interval(heap.start, heap.end, owner, heap.start, heap.start)
        for rank in self._table.ranks:
            if rank.state != MIGRATED_OUT:
                yield from self._rank_parts(rank)

    def _object_parts(self, found: Object, rank: Optional[int], base: int) -> Iterator[Interval]:
        for segment in found.segments:
            kind = "original" if rank is None else kind_of(segment)
            owner = Owner(0, kind, rank, found.index)
            yield Interval(base + segment.offset, base + segment.end, owner, found.base + segment.offset, base)

    def _rank_parts(self, rank: Rank) -> Iterator[Interval]:
        for one in rank.placements:
            if isinstance(one, Rebase) and one.object is not None:
                yield from self._object_parts(self._table.objects[one.object], rank.rank, one.copy)
            elif isinstance(one, Redirect):
                owner = Owner(0, "data", rank.rank, one.object)
                base = one.storage - (one.original - self._table.objects[one.object].base)
                yield Interval(one.storage, one.storage + max(one.size, 1), owner, one.original, base)
            elif isinstance(one, TlsBlock):
                start = one.address - one.size if one.is_thread_pointer else one.address
                yield Interval(start, start + one.size, Owner(0, "tls", rank.rank, one.object), start, start)
        for kind, place in (("stack", rank.stack), ("heap", rank.heap)):
            if isinstance(place, Region):
                yield Interval(place.start, place.end, Owner(0, kind, rank.rank), place.start, place.start)

    def owner(self, address: int) -> Owner:
        """Whose an address is."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._parts_sorted[index].end:
            part = self._parts_sorted[index]
            return replace(
                part.owner, address=address, offset=address - part.base, original=part.original + address - part.start
            )
        index = bisect_right(self._range_starts, address) - 1
        if index >= 0 and address < self._ranges[index][1]:
            why = "it is in the rank's address range, and neither copy, stack nor heap"
            return Owner(address, "range", self._ranges[index][2], original=address, reason=why)
        return self._outside(address)

    def _outside(self, address: int) -> Owner:
        index = bisect_right(self._map_starts, address) - 1
        if index < 0 or address >= self._maps[index].end:
            return Owner(address, "unmapped", original=address, reason="nothing is mapped there")
        one = self._maps[index]
        if one.path.startswith("["):
            return Owner(address, "runtime", original=address, reason=f"it is the process's {one.path}")
        why = "" if one.path else "it is memory of the process that belongs to no rank"
        return Owner(address, "runtime", offset=address - one.start + one.offset, original=address, reason=why)

    def mapping(self, address: int) -> Optional[MemoryMapping]:
        """The mapping that holds an address, if any does."""
        index = bisect_right(self._map_starts, address) - 1
        return self._maps[index] if index >= 0 and address < self._maps[index].end else None

    def rank_address(self, rank: int, index: int, offset: int) -> int:
        """Where a rank's copy of an object has the byte at `offset`; raises `UsageError` if it has no copy."""
        base = self._copies.get((rank, index))
        if base is None:
            raise UsageError(f"rank {rank} has no copy of object {index}", "`rank list` shows the ranks")
        return base + offset

    def original(self, address: int) -> int:
        """The address in the original that a copy's address corresponds to; itself where there is none."""
        return self.owner(address).original
