"""A search of memory for the threads of stock AMPI, where no table of the runtime leads to them.

Takes a target, its maps and what the words of a thread may be; gives what has the form of a thread, in the order in
which it was allocated, so that the search may end as soon as every rank has been found. Pages that were never touched
are not read; there is no limit on the size of a mapping.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from pieglobalsfind.decoders.ampi.loader import Loader
from pieglobalsfind.machine.x86_64 import FCONTEXT_WITH_GUARD, X86_64
from pieglobalsfind.model import Region
from pieglobalsfind.target import MemoryMapping, Target, pieces

LAYOUT = FCONTEXT_WITH_GUARD  # Charm++ has a jump_fcontext of its own
SAVED_PC, SAVED_SIZE = (
    next(one.offset for one in LAYOUT if one.dwarf_register == number) for number in (X86_64.pc, X86_64.stack_pointer)
)
MAIN_HEAP = "[heap]"  # proc(5); a core file does not name it
FORM = struct.Struct("<QQQQQ")  # context, entry, end of stack, flags, size
ENTRY = 8  # bytes before the entry in it
BUCKET = 24  # bits of an address that several functions do not have in common
PAGE = 4096
TOP, LARGEST_TEXT = 1 << 64, 1 << 32  # a damaged header may name any addresses; linkers' code has at most 2 GiB
AROUND_PROGRAM = 1 << 40  # bytes in which the kernel places the heap, and nothing that is mapped


@dataclass(frozen=True)
class Signature:
    """{context, entry, end of stack, flags, size} at `address`; not yet known to be a thread."""

    address: int
    context: int
    entry: int
    stack: Region


@dataclass(frozen=True)
class Form:
    """What the words of a thread may be. Of a loader without symbols the entry may be any function in its text."""

    loader: Loader

    def signature(self, data: bytes, at: int, address: int) -> Optional[Signature]:
        """The signature at offset `at` of bytes that lie at `address`, None if there is none."""
        if at < 0 or at + FORM.size > len(data):
            return None
        context, entry, end, _, size = FORM.unpack_from(data, at)
        stack = Region(end - size, size)
        is_stack = 0 < size < end and stack.start <= context <= end - SAVED_SIZE
        return Signature(address + at, context, entry, stack) if is_stack and self._fits(entry, stack) else None

    def _fits(self, entry: int, stack: Region) -> bool:
        space = self.loader.space
        if not self.loader.entry:
            return space.start <= stack.start < space.end and stack.start % PAGE == 0 and self.loader.has_code(entry)
        number = space.rank_at(stack.start)
        return entry == self.loader.entry and number is not None and space.begin(number) == stack.start

    def within(self, data: bytes, start: int) -> Iterator[Signature]:
        """The signatures in bytes that lie at `start`, by what every thread's entry has."""
        for offset, pattern in self._patterns:
            at = data.find(pattern)
            while at >= 0:
                first = at - offset - ENTRY
                signature = self.signature(data, first, start) if (start + first) % 8 == 0 else None
                if signature is not None:
                    yield signature
                at = data.find(pattern, at + 1)

    @cached_property
    def _patterns(self) -> list[tuple[int, bytes]]:
        """(offset in the entry's word, bytes without zeros: memory is full of those) that every thread has."""
        if self.loader.entry:
            return [(0, struct.pack("<Q", self.loader.entry).rstrip(b"\0"))]
        elf = self.loader.elf
        text = (
            (elf.load_bias + segment.vaddr, elf.load_bias + segment.end)
            for segment in elf.segments
            if segment.flags & 1
        )
        sound = ((low, end) for low, end in text if 1 << BUCKET <= low < end < TOP and end - low <= LARGEST_TEXT)
        highs = {high for low, end in sound for high in range(low >> BUCKET, ((end - 1) >> BUCKET) + 1)}
        return [(BUCKET // 8, high.to_bytes(5, "little").rstrip(b"\0")) for high in sorted(highs)]


def signatures(target: Target, maps: Sequence[MemoryMapping], form: Form) -> Iterator[list[Signature]]:
    """Yield what each piece of memory has, the oldest memory first."""
    for mapping in in_order(maps, form.loader):
        for start, data in pieces(target, mapping.start, mapping.end, FORM.size - 8):
            yield list(form.within(data, start))


def in_order(maps: Sequence[MemoryMapping], loader: Loader) -> list[MemoryMapping]:
    """Memory that an allocator may have, as it was allocated: the heap after the program first, then what was mapped.

    Linux extends the heap upwards and maps downwards.
    """
    space, program = loader.space, loader.elf.base
    mappings = [mapping for mapping in maps if _is_heap(mapping) and not space.start <= mapping.start < space.end]
    heap = [one for one in mappings if program <= one.start < program + AROUND_PROGRAM]
    return [*heap, *(one for one in reversed(mappings) if one not in heap)]


def _is_heap(mapping: MemoryMapping) -> bool:
    return mapping.path in ("", MAIN_HEAP) and mapping.readable and mapping.writable and not mapping.shared


def ranks_here(maps: Sequence[MemoryMapping], loader: Loader) -> set[int]:
    """The ranks whose stacks are mapped; one that is migrating away may be among them."""
    space = loader.space
    begins = {}
    for mapping in maps:
        if mapping.writable and space.start <= mapping.start < space.end:
            begins.update(dict.fromkeys(_ranks_in(mapping, loader)))
    return set(begins)


def _ranks_in(mapping: MemoryMapping, loader: Loader) -> Iterator[int]:
    """The ranks whose shares begin in a mapping: adjacent ones may be one mapping."""
    space = loader.space
    first, last = space.rank_at(mapping.start), space.rank_at(min(mapping.end, space.end) - 1)
    first = space.count if first is None else first
    for number in range(first, (space.count - 1 if last is None else last) + 1):
        if mapping.start <= space.begin(number) < mapping.end:
            yield number
