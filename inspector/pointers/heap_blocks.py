"""Where the blocks of a rank's heap are, by the allocator's own words in it.

Takes a function that reads the heap, of which a little is held at a time; knows that of Boost.Interprocess, which the
embedded runtime uses (rbtree_best_fit: a word with the size of the block before, one with the size of this one and two
flags, in units of 16 bytes). It is believed only if all words agree, from the first block to the end; else the blocks
are unknown.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Optional

from .typed_heap_objects import AllocatedRegion

UNIT = 16
HEADER = 16  # bytes before what a block's owner has
BORROWED = 8  # of the next block's header
FIRST = range(32, 257, UNIT)  # where the first block may be, behind the allocator's own state
ALLOCATED, BEFORE_IS_ALLOCATED, SIZE = 1 << 63, 1 << 62, (1 << 62) - 1
MOST_BLOCKS = 4_000_000
WINDOW = 1 << 16  # bytes
Read = Callable[[int, int], bytes]
_words = struct.Struct("<QQ").unpack_from


class Blocks:
    """Blocks that are in use, in ascending order, asked by bisection."""

    def __init__(self, allocated_regions: Sequence[AllocatedRegion]) -> None:
        self._regions = allocated_regions
        self._starts = [allocated_region.start for allocated_region in allocated_regions]

    def at(self, address: int) -> Optional[AllocatedRegion]:
        """The block that has the byte at an address."""
        index = bisect_right(self._starts, address) - 1
        return self._regions[index] if index >= 0 and address < self._regions[index].end else None


class _HeapWords:
    """Pairs of words of a heap of any size, of which a little is held at a time."""

    def __init__(self, read: Read, start: int, size: int) -> None:
        self.start = start
        self.size = size
        self._read = read
        self._first, self._data = 0, b""

    def at(self, offset: int) -> tuple[int, int]:
        """The two words at an offset that lies in the heap with what follows."""
        if not self._first <= offset <= self._first + len(self._data) - HEADER:
            self._first = offset
            self._data = self._read(self.start + offset, min(WINDOW, self.size - offset))
        first, second = _words(self._data, offset - self._first)
        return first, second


def blocks_in(read: Read, start: int, size: int) -> Optional[Blocks]:
    """The blocks in use of the heap at `start`; None if it is of another allocator, or changes.

    Raises what `read` raises.
    """
    words = _HeapWords(read, start, size)
    for first in FIRST:
        allocated_regions = _walked(words, first)
        if allocated_regions is not None:
            return Blocks(allocated_regions)
    return None


def _walked(words: _HeapWords, first: int) -> Optional[list[AllocatedRegion]]:
    """The first block's word of the size before it, and the last header's size, are the distance of the two."""
    if first + HEADER > words.size:
        return None
    span, head = words.at(first)
    end = first + span * UNIT
    if not 0 < span < words.size or end + HEADER > words.size or not head & BEFORE_IS_ALLOCATED:
        return None
    allocated_regions: list[AllocatedRegion] = []
    at, before, before_is_free = first, 0, False
    for _ in range(MOST_BLOCKS):
        size_before, head = words.at(at)
        size, is_free = head & SIZE, not head & ALLOCATED
        agrees = at == first or (bool(head & BEFORE_IS_ALLOCATED) != before_is_free)
        if not agrees or (before_is_free and size_before != before):
            return None
        if at == end:
            return allocated_regions if size == span and not is_free else None
        if size == 0 or at + size * UNIT > end:
            return None
        if not is_free:
            allocated_regions.append(AllocatedRegion(words.start + at + HEADER, size * UNIT - HEADER + BORROWED))
        at, before, before_is_free = at + size * UNIT, size, is_free
    return None
