"""Whose an address is: one sorted table of all images, originals and mappings, asked by bisection.

Takes a rank table and a memory map, both as values; pure. A rank's copies are one interval each, and the object says
what lies where in a copy: ten thousand ranks cost no more than their placements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.errors import UsageError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import (
    MIGRATED_OUT,
    Absent,
    Object,
    Owner,
    Rank,
    RankTable,
    Rebase,
    Redirect,
    Region,
    TlsBlock,
)
from pieglobalsfind.ranges import place_of, range_at
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.target import MemoryMapping

# Why a place is another's than it seems, where a runtime failed to make a variable private
IN_USE = "the ranks use it: privatization failed"
UNUSED = "its code uses the original's: privatization failed"
# What an interval is
COPY, STACK, HEAP, TLS, REDIRECTED = range(5)
ADDRESSES = 1 << 64

Part = Union[Rebase, Redirect]


@dataclass(frozen=True)
class TlsPart:
    """The block of one object, or with `object` None a whole static area: [start, start+size)."""

    object: Optional[int]
    start: int
    size: int


# (start, end, what, index of the rank, part)
Interval = tuple[int, int, int, int, Union[Part, TlsPart, None]]


NO_RANK = -1  # of an interval that several ranks have


class Intervals:
    """Intervals that do not overlap, asked by bisection. Those that several ranks have are no rank's."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        by_start: dict[int, Interval] = {}
        for interval in intervals:
            by_start[interval[0]] = interval if interval[0] not in by_start else (*interval[:3], NO_RANK, interval[4])
        self._intervals = sorted(by_start.values(), key=lambda part: part[0])

    def at(self, address: int) -> Optional[Interval]:
        """The interval that covers an address."""
        return range_at(self._intervals, address)


class Translator:
    """Answers for one moment of a target: make a new one when the table or the map is a new one."""

    def __init__(self, table: RankTable, maps: Sequence[MemoryMapping]) -> None:
        self._table = table
        self._maps = maps
        self._columns = columns_of(table.ranks)

    # ---- the tables ----

    @cached_property
    def _indices(self) -> dict[int, int]:
        """Of the ranks by their numbers."""
        return {number: index for index, number in enumerate(self._columns.numbers)}

    @cached_property
    def _levels(self) -> tuple[Intervals, ...]:
        """What may lie within something else comes before it: variables apart, TLS areas, then copies and regions."""
        blocks = list(self._tls())
        variables = [*self._redirected(), *(block for block in blocks if is_of_object(block))]
        areas = [block for block in blocks if not is_of_object(block)]
        return tuple(Intervals(level) for level in (variables, areas, self._images()))

    def _images(self) -> Iterator[Interval]:
        for index, rank in enumerate(self._table.ranks):
            stack, heap = rank.stack, rank.heap
            if isinstance(stack, Region):
                yield stack.start, stack.start + stack.size, STACK, index, None
            if isinstance(heap, Region):
                yield heap.start, heap.start + heap.size, HEAP, index, None
            for placement in rank.placements:
                if isinstance(placement, Rebase) and placement.object is not None:
                    yield placement.copy, placement.copy + placement.size, COPY, index, placement

    def _redirected(self) -> Iterator[Interval]:
        """What stays in the original for all needs no telling, unless the original is the copy of one of them."""
        parts = (placement for rank in self._table.ranks for placement in rank.placements)
        owned = {part.object for part in parts if isinstance(part, Rebase) and part.copy == part.original}
        for index, redirect in self._redirects:
            if not redirect.is_shared or redirect.storage != redirect.original or redirect.object in owned:
                yield redirect.storage, redirect.storage + redirect.size, REDIRECTED, index, redirect

    @cached_property
    def _redirects(self) -> list[tuple[int, Redirect]]:
        """Of all ranks, each with the rank's index."""
        return [
            (index, placement)
            for index, rank in enumerate(self._table.ranks)
            for placement in rank.placements
            if isinstance(placement, Redirect)
        ]

    @cached_property
    def _failed(self) -> dict[Optional[int], Intervals]:
        """By rank, and for None of all ranks, what their code uses of the originals though they have copies."""
        parts_of: dict[Optional[int], list[Interval]] = {}
        for index, redirect in self._redirects:
            if redirect.is_failure:
                part = (redirect.original, redirect.original + redirect.size, REDIRECTED, index, redirect)
                parts_of.setdefault(self._columns.numbers[index], []).append(part)
                parts_of.setdefault(None, []).append(part)
        return {number: Intervals(parts) for number, parts in parts_of.items()}

    def _has_failed(self, rank: Optional[int], original: int) -> bool:
        return rank in self._failed and self._failed[rank].at(original) is not None

    def _tls(self) -> Iterator[Interval]:
        for index, rank in enumerate(self._table.ranks):
            for placement in rank.placements:
                if isinstance(placement, TlsBlock):
                    for part in self._tls_parts(placement):
                        yield part.start, part.start + part.size, TLS, index, part

    def _tls_parts(self, block: TlsBlock) -> Iterator[TlsPart]:
        """Blocks lie beside the thread pointer (ELF Handling For Thread-Local Storage, 3.4)."""
        if not block.is_thread_pointer:
            yield TlsPart(block.object, block.address, block.size)
            return
        yield TlsPart(None, self._table.processor.static_tls_start(block.address, block.size), block.size)
        for elf_object in self._table.objects:
            if elf_object.tls_offset and elf_object.tls_size and block.object in (None, elf_object.index):
                yield TlsPart(elf_object.index, block.address - elf_object.tls_offset, elf_object.tls_size)

    @cached_property
    def _ranges(self) -> list[tuple[int, int, int]]:
        """(start, end, index of the rank) of the ranks' address ranges, ascending."""
        ranges = [
            (rank.range.start, rank.range.end, index)
            for index, rank in enumerate(self._table.ranks)
            if isinstance(rank.range, Region)
        ]
        return sorted(ranges)

    @cached_property
    def _originals(self) -> list[Object]:
        return sorted(self._table.objects, key=lambda elf_object: elf_object.base)

    @cached_property
    def _copied(self) -> frozenset[int]:
        """The objects that ranks have copies of; while there are no ranks, they still may get them."""
        if not self._table.ranks:
            return frozenset(elf_object.index for elf_object in self._table.objects)
        parts = (placement for rank in self._table.ranks for placement in rank.placements)
        return frozenset(part.object for part in parts if isinstance(part, Rebase) and part.object is not None)

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        return sorted((start, start + size) for start, size in self._table.constructor_blocks)

    @cached_property
    def _bases(self) -> dict[int, int]:
        """By the start of each mapping of a file: where that file begins, by its lowest mapping.

        A file may be loaded several times (linker namespaces): each time begins with its first bytes, not writable.
        """
        last: dict[str, int] = {}
        end_of: dict[int, int] = {}
        for mapping in self._maps:
            if mapping.path not in last or (mapping.offset == 0 and not mapping.writable):
                last[mapping.path] = (
                    mapping.start - mapping.offset if mapping.start >= mapping.offset else mapping.start
                )
            end_of[mapping.start] = last[mapping.path]
        return end_of

    # ---- forwards: whose is it ----

    def owner(self, address: int) -> Owner:
        """Whose `address` is. Never fails: what belongs to nothing has kind "unmapped" and a reason."""
        if not 0 <= address < ADDRESSES:
            return Owner(address, "unmapped", reason="there is no such address")
        for level in self._levels:
            interval = level.at(address)
            if interval is not None:
                return self._of_rank(address, interval)
        of_rank = range_at(self._ranges, address)
        if of_rank is not None:
            return self._of_range(address, of_rank[2])
        return self._of_original(address) or self._of_process(address)

    def _of_rank(self, address: int, interval: Interval) -> Owner:
        start, _, what, index, part = interval
        offset = address - start
        if index == NO_RANK:
            return self._of_many(address, offset, part)
        rank = self._table.ranks[index]
        if what == COPY and isinstance(part, Rebase) and part.object is not None:
            return self._in_copy(address, rank.rank, self._table.objects[part.object], offset)
        if what == REDIRECTED and isinstance(part, Redirect):
            original = part.original + offset
            elf_object = self._table.objects[part.object]
            return Owner(address, "data", rank.rank, part.object, original - elf_object.base, original)
        if what == TLS and isinstance(part, TlsPart):
            return Owner(address, "tls", rank.rank, part.object, offset)
        if what == HEAP:
            return self._in_heap(address, rank, offset)
        return Owner(address, "stack", rank.rank, offset=offset)

    def _of_many(self, address: int, offset: int, part: Union[Part, TlsPart, None]) -> Owner:
        reason = "several ranks share it"
        if isinstance(part, Redirect):
            original = part.original + offset
            elf_object = self._table.objects[part.object]
            return Owner(address, "data", None, part.object, original - elf_object.base, original, reason)
        return Owner(address, "tls", None, part.object if isinstance(part, TlsPart) else None, offset, reason=reason)

    def _in_copy(self, address: int, rank: int, elf_object: Object, offset: int) -> Owner:
        kind = segment_kind(elf_object, offset)
        if kind is None:
            reason = "it lies between the segments of a copy"
            return Owner(address, "range", rank, elf_object.index, offset, elf_object.base + offset, reason)
        reason = UNUSED if self._has_failed(rank, elf_object.base + offset) else ""
        return Owner(address, kind, rank, elf_object.index, offset, elf_object.base + offset, reason)

    def _in_heap(self, address: int, rank: Rank, offset: int) -> Owner:
        """The part of the heap that was replayed from the constructors' heap has an original."""
        original = 0
        for placement in rank.placements:
            if (
                isinstance(placement, Rebase)
                and placement.object is None
                and 0 <= address - placement.copy < placement.size
            ):
                original = placement.original + address - placement.copy
        if original and range_at(self._blocks, original):
            return Owner(address, "heap", rank.rank, offset=offset, original=original)
        return Owner(address, "heap", rank.rank, offset=offset)

    def _of_range(self, address: int, index: int) -> Owner:
        rank = self._table.ranks[index]
        start = rank.range.start if isinstance(rank.range, Region) else address
        reason = "the rank has migrated to another process" if rank.state == MIGRATED_OUT else ""
        mapping = self.mapping(address)
        if not reason:
            usable = mapping is not None and mapping.readable
            reason = "reserved for the rank" + (", which does not use it" if usable else ", not in use or a guard page")
        return Owner(address, "range", rank.rank, offset=address - start, reason=reason)

    def _of_original(self, address: int) -> Optional[Owner]:
        for original in self._originals:
            if original.base <= address < original.end:
                if segment_kind(original, address - original.base) is None:
                    return None
                kind = "original" if original.index in self._copied else "shared"
                kind = kind if original.privatized or original.is_program else "runtime"
                reason = IN_USE if self._has_failed(None, address) else ""
                return Owner(
                    address, kind, None, original.index, address - original.base, address, reason, original.path
                )
        heap = self._table.constructor_heap
        if heap is not None and address in heap:
            reason = "what constructors allocated before there were ranks"
            return Owner(address, "original", offset=address - heap.start, original=address, reason=reason)
        return None

    def mapping(self, address: int) -> Optional[MemoryMapping]:
        """The mapping that holds an address, or None."""
        return mapping_at(self._maps, address)

    def is_mapped(self, address: int) -> bool:
        """Whether anything is mapped there."""
        return self.mapping(address) is not None

    def is_of_file(self, address: int) -> bool:
        """Whether a file is mapped there."""
        mapping = self.mapping(address)
        return mapping is not None and mapping.path.startswith("/")

    def _of_process(self, address: int) -> Owner:
        mapping = self.mapping(address)
        if mapping is None:
            return Owner(address, "unmapped", reason=self._neighbours(address))
        if not (mapping.readable or mapping.writable or mapping.executable):
            reason = "its memory is reserved, and may not be touched (a guard page)"
            return Owner(address, "unmapped", reason=reason)
        if mapping.path.startswith("/"):
            return Owner(
                address, "runtime", None, None, address - self._bases[mapping.start], address, path=mapping.path
            )
        reason = "" if mapping.path else "anonymous memory of the process, no rank's"
        return Owner(address, "runtime", None, None, address - mapping.start, address, reason, mapping.path)

    def _neighbours(self, address: int) -> str:
        """Why no rank or object owns an address: what lies nearest."""
        if address < 1 << 16:
            return "it is not mapped; such a small address is a null pointer with an offset"
        processor = self._table.processor
        if processor.end_of_user_space <= address < ADDRESSES - processor.end_of_user_space:
            why = f"({processor.name}: {processor.beyond_it})"
            return f"it is not mapped; no address of a user program looks like this {why}"
        at = place_of(self._maps, address)
        if at >= 0 and address - self._maps[at].end < 1 << 20:
            name = self._maps[at].path or "anonymous memory"
            return f"it is not mapped, {address - self._maps[at].end} bytes after the end of {name}"
        return "it is not mapped"

    # ---- backwards ----

    def rank_address(self, rank: int, object_index: int, offset: int) -> int:
        """Where `rank` has the byte `offset` from the object's base; raises `UsageError` if it has none."""
        elf_object = self._table.objects[object_index]
        index = self._indices.get(rank)
        owner = None if index is None else self._table.ranks[index]
        address = data_place(owner, elf_object, elf_object.base + offset) if owner else None
        if isinstance(address, int):
            return address
        raise UsageError(f"rank {rank} has no copy of {elf_object.path}")

    def original(self, address: int) -> int:
        """The address that debug information describes: the original's for what is in a copy, else `address`."""
        return self.owner(address).original or address

    def rank_of(self, address: int) -> Union[int, Absent]:
        """The rank in whose image an address lies."""
        owner = self.owner(address)
        return owner.rank if owner.rank is not None else Absent(owner.reason or "it belongs to no rank")


def is_of_object(interval: Interval) -> bool:
    """Whether a TLS interval is one object's block, which lies in an area of many."""
    return isinstance(interval[4], TlsPart) and interval[4].object is not None


def segment_kind(elf_object: Object, offset: int) -> Optional[str]:
    """code, data or rodata by the segment that `offset` from the object's base lies in; None between segments."""
    for segment in elf_object.segments:
        if segment.offset <= offset < segment.end:
            return "code" if segment.executable else "data" if segment.writable else "rodata"
    return None
