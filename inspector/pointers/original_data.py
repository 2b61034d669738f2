"""Read the originals once: the data and the constructors' heap blocks that ranks' images were copied from.

Takes a `Job`; reads the originals once, whatever number of ranks there are. It looks at no rank.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.saved_context import pointer_guard
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import Absent, Object, Rebase
from pieglobalsfind.target import Target, backed

from ..job.job import Job
from ..job.rank_data import LARGEST_PIECE
from .ground import NO_POINTER, UNTYPED, Ground
from .object_evidence import ObjectEvidence, mangled_jump_words
from .typed_heap_objects import AllocatedRegion, PointersOf, Reached, Typed
from .words import WORD, Ranges, Word, candidates, mangled_words, words_in


@dataclass(frozen=True)
class ScannedPart:
    """A piece of an original that the runtime copies and looks through: a data segment or a constructor heap block.

    `candidates` are (offset in data, value): words that name an original place; `mangled` those that do once glibc's
    mangling is undone, with the place. `held` are (start, end) in data of what may be anything but zeros.
    """

    object: Optional[Object]
    start: int
    data: bytes
    candidates: tuple[tuple[int, int], ...]
    mangled: tuple[tuple[int, int], ...] = ()
    held: tuple[tuple[int, int], ...] = ()

    @property
    def end(self) -> int:
        """Return the address past the end."""
        return self.start + len(self.data)


class OriginalMemory:
    """What the originals hold, read once."""

    def __init__(self, job: Job) -> None:
        self.parts = sorted(read_data(job), key=lambda part: part.start)
        self._starts = [part.start for part in self.parts]
        self._blocks = sorted(job.table.constructor_blocks)

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes; raises `MemoryUnreadable`."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address + size > self.parts[index].end:
            raise MemoryUnreadable(address, size)
        start = address - self.parts[index].start
        return self.parts[index].data[start : start + size]

    def block_at(self, address: int) -> Optional[AllocatedRegion]:
        """The constructor's block that has the byte at an address."""
        index = bisect_right(self._blocks, (address, 1 << 64)) - 1
        allocated_region = AllocatedRegion(*self._blocks[index]) if index >= 0 else None
        return allocated_region if allocated_region is not None and address < allocated_region.end else None


class Originals:
    """All originals of a job, and the evidence of what their words are."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.evidence = {
            elf_object.index: ObjectEvidence(elf_object, job.file(elf_object), job.declared(elf_object))
            for elf_object in job.privatized
        }
        self.pointers = PointersOf()
        self.ranges = original_ranges(job)
        self.code: Ranges = [
            (elf_object.base + part.offset, elf_object.base + part.end - 1)
            for elf_object in job.privatized
            for part in elf_object.segments
            if part.executable
        ]
        self.guard = guard_of(job)
        self.processor = job.table.processor
        self._owned = owned(job)
        memory = OriginalMemory(job)
        self.reached = Reached(self.pointers, memory.read, memory.block_at, job.translator.is_mapped)
        if job.table.constructor_blocks:
            self.reached.follow(self.roots())
        self.parts = tuple(self._with_candidates(part) for part in memory.parts)
        self._find_objects_in_bytes()

    def roots(self) -> Iterator[Typed]:
        """The originals' variables that hold pointers."""
        for elf_object in self.job.privatized:
            evidence = self.evidence[elf_object.index]
            for holder in evidence.holders():
                yield Typed(
                    elf_object.base + evidence.offset_of(holder),
                    evidence.types,
                    holder.type,
                    holder.name,
                    holder.language,
                    mangled_jump_words(self.processor),
                )

    def is_owned(self, address: int) -> bool:
        """Whether an original is a rank's own copy: what a loader has loaded for each rank is the first one's."""
        return any(start <= address < end for start, end in self._owned)

    def ground(self, part: ScannedPart, offset: int) -> Ground:
        """What the word at an offset of a part is."""
        if part.object is not None:
            return self.evidence[part.object.index].ground(part.start + offset - part.object.base)
        return self.reached.ground(part.start + offset) or Ground(UNTYPED, "a block that a constructor allocated")

    def demangled(self, data: bytes, start: int) -> Iterator[tuple[int, int]]:
        """(offset, address) of words that lead to an original's code once they are demangled."""
        return (
            iter(())
            if isinstance(self.guard, Absent)
            else mangled_words(self.processor, data, start, self.code, self.guard)
        )

    def words(self, data: bytes, start: int, ranges: Ranges) -> Iterator[Word]:
        """Words that name a place in one of the ranges, plainly or mangled."""
        for offset, value in words_in(data, ranges):
            yield Word(start + offset, value)
        for offset, place in self.demangled(data, start):
            if any(low <= place <= high for low, high in ranges):
                yield Word(start + offset, int.from_bytes(data[offset : offset + WORD], "little"), place)

    def _with_candidates(self, scanned_part: ScannedPart) -> ScannedPart:
        if scanned_part.object is not None:
            base, end = scanned_part.start - scanned_part.object.base, scanned_part.end - scanned_part.object.base
            inside = [
                at - base for at in self.evidence[scanned_part.object.index].pointers() if base <= at <= end - WORD
            ]
        else:
            inside = [
                at - scanned_part.start
                for at in self.reached.pointers_in(AllocatedRegion(scanned_part.start, len(scanned_part.data)))
            ]
        named = tuple(candidates(scanned_part.data, scanned_part.start, self.ranges, sorted(set(inside))))
        return ScannedPart(
            scanned_part.object,
            scanned_part.start,
            scanned_part.data,
            named,
            tuple(self.demangled(scanned_part.data, scanned_part.start)),
            held_in(self.job.target, scanned_part.start, len(scanned_part.data)),
        )

    def _find_objects_in_bytes(self) -> None:
        """C++ builds objects in arrays of char (placement new): a virtual table's address there gives them away."""
        for part in self.parts:
            for offset, value in part.candidates if part.object is not None else ():
                assert part.object is not None
                evidence, place = self.evidence[part.object.index], part.start + offset - part.object.base
                if evidence.ground(place).kind == NO_POINTER and is_virtual_table(self.job, value):
                    evidence.holds_object(place)


def original_ranges(job: Job) -> Ranges:
    """[start, end] of what was copied: the privatized objects and the constructors' heap blocks."""
    ranges = [(elf_object.base, elf_object.end) for elf_object in job.privatized]
    return ranges + [(address, address + size) for address, size in job.table.constructor_blocks]


def owned(job: Job) -> list[tuple[int, int]]:
    """[start, end) of the originals that are some rank's own."""
    parts = {placement for rank in job.present for placement in rank.placements if isinstance(placement, Rebase)}
    return [(part.original, part.original + part.size) for part in parts if part.copy == part.original]


def read_data(job: Job) -> Iterator[ScannedPart]:
    """The originals' data segments and heap blocks, their words not looked at yet."""
    for elf_object in job.privatized:
        for segment in elf_object.segments:
            if not segment.executable:
                start = elf_object.base + segment.offset
                yield ScannedPart(elf_object, start, read_or_nothing(job.target, start, segment.memory_size), ())
    for address, size in job.table.constructor_blocks:
        yield ScannedPart(None, address, read_or_nothing(job.target, address, size), ())


def held_in(target: Target, start: int, size: int) -> tuple[tuple[int, int], ...]:
    """(start, end) of what of a range may be anything but zeros, from its beginning on, ascending."""
    return tuple((first - start, last - start) for first, last in backed(target, start, start + size))


def read_or_nothing(target: Target, start: int, size: int) -> bytes:
    """Read memory, or return nothing where it can't be read."""
    try:
        return target.read(start, size) if size <= LARGEST_PIECE else b""
    except MemoryUnreadable:
        return b""


def guard_of(job: Job) -> Union[int, Absent]:
    """What glibc mangles pointers with, where ranks have copies at all."""
    copied = any(
        isinstance(placement, Rebase) and placement.copy != placement.original
        for rank in job.present
        for placement in rank.placements
    )
    if not copied:
        return Absent("no rank has a copy")
    try:
        return pointer_guard(job.target, job.target.maps())
    except RanklensError as error:
        return Absent(f"pointers that glibc has mangled were not searched for, {error.sentence}", error.hint)


def is_virtual_table(job: Job, value: int) -> bool:
    """Whether an object's first word may have this value (Itanium C++ ABI, 2.5.2): a `_ZTV` symbol and a few words."""
    symbol = job.symbolizer.symbol(job.translator.owner(value))
    return not isinstance(symbol, Absent) and symbol.linkage_name.startswith("_ZTV") and symbol.offset >= 2 * WORD
