"""The blocks of the GNU C library's heap: one for all ranks, which has what they allocate where `malloc` is libc's.

Takes a target and the memory that is ranks' own; finds blocks by the allocator's own words (glibc, malloc/malloc.c and
arena.c: before each block its size and three flags; heaps of threads begin at multiples of 64 MiB). They are believed
only if all words agree, from a heap's beginning to its end. It knows nothing of whose a block is, and keeps no bytes.
"""

from __future__ import annotations

import struct
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import MemoryMapping, Target

from .reach import Block

UNIT, HEADER, BORROWED = 16, 16, 8  # bytes: of sizes, before what a block's owner has, of the next block's header
BEFORE_IS_USED, IS_MAPPED, OF_THREAD, FLAGS = 1, 2, 4, 7
PAGE, PIECE = 1 << 12, 1 << 22
THREAD_HEAP = 1 << 26  # HEAP_MAX_SIZE
FIRST = range(0x20, 0xA00, UNIT)  # where a thread's first block may be: behind heap_info, and malloc_state
MOST_BLOCKS = 2_000_000  # of all heaps
ATTEMPTS, BETWEEN = 5, 0.002  # seconds; of a running process the words may change while they are read
MOST_PARTS = 8  # of a heap that nobody names
MAIN = "[heap]"  # proc(5); a core file does not name it
_words = struct.Struct("<QQ").unpack_from


class Heap(NamedTuple):
    """A mapping in which the allocator has blocks: where those in use begin, ascending, and where they end.

    What is none of its heaps (not `is_heap`) may have blocks that were mapped one by one.
    """

    mapping: MemoryMapping
    starts: array[int]
    ends: array[int]
    is_heap: bool = True

    def at(self, address: int) -> Optional[Block]:
        """The block in use that has the byte at an address."""
        index = bisect_right(self.starts, address) - 1
        if index < 0 or address >= self.ends[index]:
            return None
        return Block(self.starts[index], self.ends[index] - self.starts[index])


class LibcHeap:
    """All heaps of a target, and the large blocks that are mapped one by one; `unread`: bytes of unknown blocks."""

    def __init__(self, target: Target, own: Iterable[tuple[int, int]]) -> None:
        self._target = target
        self._own = joined(own)
        self.heaps: list[Heap] = []
        self.others: list[Heap] = []
        self.unread = 0
        self._left = MOST_BLOCKS
        left = [one for one in target.maps() if is_anonymous(one) and not self._is_own(one)]
        while left:
            del left[: self._add(left)]
        self._every = sorted((*self.heaps, *self.others), key=lambda one: one.mapping.start)
        self._begins = [one.mapping.start for one in self._every]

    def _is_own(self, mapping: MemoryMapping) -> bool:
        """Whether a rank has something in it."""
        index = bisect_right(self._own, (mapping.start, 1 << 64))
        before, behind = self._own[max(index - 1, 0) : index], self._own[index : index + 1]
        return any(end > mapping.start for _, end in before) or any(start < mapping.end for start, _ in behind)

    def _add(self, left: Sequence[MemoryMapping]) -> int:
        """Look for a heap that begins with the first of the mappings; how many it has."""
        first = left[0]
        for attempt in range(ATTEMPTS):
            try:
                for count, mapping in wholes(left):
                    found = self._found(mapping)
                    if found is not None:
                        self._left -= len(found.starts)
                        self.heaps.append(found)
                        return count
            except MemoryUnreadable:
                break
            if first.path != MAIN:
                self.others.append(Heap(first, array("Q"), array("Q"), False))
                return 1
            time.sleep(BETWEEN * attempt if self._target.is_live else 0)
        count, whole = next(wholes(left))
        self.unread += whole.end - whole.start if whole.path == MAIN else 0
        return count

    def _found(self, mapping: MemoryMapping) -> Optional[Heap]:
        """The main heap, or a thread's; None if it is neither. Raises `MemoryUnreadable`."""
        window = Window(self._target, mapping.start, mapping.end)
        found = walked(window, mapping.start, mapping.end, 0, self._left)
        if found is None and mapping.start % THREAD_HEAP == 0 and mapping.end - mapping.start > FIRST.stop:
            end = mapping.start + window.words(mapping.start + HEADER)[0]  # heap_info's size
            if mapping.start + PAGE <= end <= mapping.end:
                tried = (walked(window, mapping.start + first, end, OF_THREAD, self._left) for first in FIRST)
                found = next((one for one in tried if one is not None), None)
        return Heap(mapping, *found) if found is not None else None

    @property
    def in_use(self) -> int:
        """Bytes in blocks in use, without those that are mapped one by one."""
        return sum(sum(one.ends) - sum(one.starts) for one in self.heaps)

    def pieces(self) -> Iterator[tuple[int, bytes, int]]:
        """(start, bytes, how many) of all mappings, one after the other, each piece with the rest of its last word."""
        for one in (*self.heaps, *self.others):
            for start in range(one.mapping.start, one.mapping.end, PIECE):
                size = min(PIECE, one.mapping.end - start)
                try:
                    data = self._target.read(start, min(size + UNIT, one.mapping.end - start))
                except MemoryUnreadable:
                    self.unread += size if one.is_heap else 0
                    continue
                yield start, data, size

    def at(self, address: int) -> Optional[Block]:
        """The block in use that has the byte at an address; of one mapped by itself, once its beginning was asked."""
        index = bisect_right(self._begins, address) - 1
        one = self._every[index] if index >= 0 else None
        if one is None or address >= one.mapping.end:
            return None
        return one.at(address) or (None if one.is_heap else self._mapped(one, address))

    def _mapped(self, one: Heap, address: int) -> Optional[Block]:
        """A block mapped by itself that begins at an address."""
        if address % PAGE != HEADER:
            return None
        try:
            before, size = _words(self._target.read(address - HEADER, HEADER))
        except MemoryUnreadable:
            return None
        end = address - HEADER + (size & ~FLAGS)
        index = bisect_right(one.starts, address)
        overlaps = index < len(one.starts) and one.starts[index] < end
        if size & FLAGS != IS_MAPPED or before or end % PAGE or not address < end <= one.mapping.end or overlaps:
            return None
        one.starts.insert(index, address)
        one.ends.insert(index, end)
        return one.at(address)


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def wholes(left: Sequence[MemoryMapping]) -> Iterator[tuple[int, MemoryMapping]]:
    """What may be one heap from the first mapping on, and of how many mappings.

    Linux keeps apart what was mapped before a fork and after it, though it is one heap; a core file does not name it.
    """
    count = 1
    while count < len(left) and left[count].start == left[count - 1].end and left[count].path == left[0].path:
        if left[0].path != MAIN:
            if count == MOST_PARTS:
                break
            yield count, left[0]._replace(end=left[count - 1].end)
        count += 1
    yield count, left[0]._replace(end=left[count - 1].end)


class Window:
    """Words of memory that is walked through upwards."""

    def __init__(self, target: Target, start: int, end: int) -> None:
        self._target, self._end = target, end
        self._start, self._data = start, b""

    def words(self, address: int) -> tuple[int, int]:
        """The word at an address, and the one behind it; raises `MemoryUnreadable`."""
        offset = address - self._start
        if offset < 0 or offset + HEADER > len(self._data):
            self._data = self._target.read(address, min(PIECE, max(self._end - address, HEADER)))
            self._start, offset = address, 0
        first, second = _words(self._data, offset)
        return first, second


def is_anonymous(one: MemoryMapping) -> bool:
    """Whether an allocator may have mapped it."""
    return one.readable and one.writable and not one.shared and one.path in ("", MAIN)


def walked(window: Window, first: int, end: int, kind: int, most: int) -> Optional[tuple[array[int], array[int]]]:
    """Where blocks in use begin and end between two places; None if any word contradicts another, or `kind`.

    The last one is free, the rest of the heap; or it has no size, where a thread's heap is followed by another one. Of
    each other the flag of the one behind it says whether it is used.
    """
    starts, ends = array("Q"), array("Q")
    at = before = first
    flags = 0
    while at + HEADER <= end:
        size_before, head = window.words(at)
        size = head & ~FLAGS or (HEADER if kind and at + HEADER == end else 0)
        if head & (IS_MAPPED | OF_THREAD) & ~kind or size < HEADER or size % UNIT or size > end - at:
            return None
        if head & BEFORE_IS_USED and at - before == HEADER:  # what ends a heap that is followed by another one
            pass
        elif head & BEFORE_IS_USED and at > first:
            if flags & OF_THREAD != kind:  # free ones need not say it
                return None
            starts.append(before + HEADER)
            ends.append(at + BORROWED)
        elif at > first and size_before != at - before:  # a free one has its size at its end, too
            return None
        if len(starts) > most:
            return None
        before, at, flags = at, at + size, head & FLAGS
    return (starts, ends) if at == end and starts else None
