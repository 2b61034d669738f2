"""The heaps of the GNU C library: all ranks allocate from them, unless their `malloc` is another one.

Takes a target and the memory that is ranks' own; finds heaps by the allocator's own words (libc_blocks.py). Those of
threads begin at multiples of 64 MiB (arena.c). A heap is believed only if all its words agree. It does not
know which rank owns a block, and keeps no bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional, Union

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.ranges import merged
from pieglobalsfind.target import PIECE, MemoryMapping, Target, populated, read_or_none

from ..terminal.progress import begin, through
from .libc_blocks import FLAGS, HEADER, OF_THREAD, PAGE, UNIT, BlockChain, MappedBlocks, WalkSpan, chain_of
from .typed_heap_objects import AllocatedRegion

THREAD_HEAP = 1 << 26  # HEAP_MAX_SIZE
FIRST = range(0x20, 0xA00, UNIT)  # where a thread's first block may be: after heap_info, and malloc_state
MOST_PARTS = 8  # of a heap without a name
MAIN = "[heap]"  # proc(5); a core file does not name it


class Heap(NamedTuple):
    """A mapping in which the allocator has blocks; what is not one of its heaps may have blocks mapped one by one."""

    mapping: MemoryMapping
    blocks: Union[BlockChain, MappedBlocks]


class LibcHeap:
    """All heaps of a target, and the large blocks that are mapped one by one; `unread`: bytes of unknown blocks."""

    def __init__(self, target: Target, own: Iterable[tuple[int, int]]) -> None:
        self._target = target
        self.heaps: list[Heap] = []
        self.others: list[Heap] = []
        self.unread = 0
        begin("blocks of libc's heap")
        left = mappings_of_libc(target, own)
        while left:
            del left[: self._add(left)]
        self._every = sorted((*self.heaps, *self.others), key=lambda heap: heap.mapping.start)
        self._begins = [heap.mapping.start for heap in self._every]

    def _add(self, left: Sequence[MemoryMapping]) -> int:
        """Look for a heap that begins with the first of the mappings; how many it has."""
        try:
            for count, mapping in wholes(left):
                chain = self._chain(mapping)
                if chain is not None:
                    self.heaps.append(Heap(mapping, chain))
                    return count
        except MemoryUnreadable:
            pass
        first = left[0]
        if first.path != MAIN:
            self.others.append(Heap(first, MappedBlocks(self._target, first.end)))
            return 1
        count, whole = next(wholes(left))
        self.unread += whole.end - whole.start
        return count

    def _chain(self, mapping: MemoryMapping) -> Optional[BlockChain]:
        """Of the main heap, or a thread's; None if it is neither. Raises `MemoryUnreadable`."""
        chain = chain_of(self._target, WalkSpan(mapping.start, mapping.end, 0))
        if chain is None and mapping.path == MAIN and self._target.is_live:  # it may have changed at its beginning
            chain = chain_of(self._target, WalkSpan(mapping.start, mapping.end, 0))
        if chain is None and mapping.start % THREAD_HEAP == 0 and mapping.end - mapping.start > FIRST.stop:
            words = array("Q", self._target.read(mapping.start, FIRST.stop + HEADER))
            end = mapping.start + words[2]  # heap_info's size
            if mapping.start + PAGE <= end <= mapping.end:
                firsts = (place for place in FIRST if words[place // 8 + 1] & FLAGS & OF_THREAD)
                spans = (WalkSpan(mapping.start + first, end, OF_THREAD) for first in firsts)
                chain = next(
                    (block_chain for span in spans if (block_chain := chain_of(self._target, span)) is not None), None
                )
        return chain

    @property
    def in_use(self) -> int:
        """Bytes in blocks in use, without those that are mapped one by one."""
        return sum(heap.blocks.in_use for heap in self.heaps if isinstance(heap.blocks, BlockChain))

    def pieces(self) -> Iterator[tuple[int, bytes, int]]:
        """(start, bytes, how many) of all mappings, one after the other, each piece with the rest of its last word.

        Pages that were never touched are left out.
        """
        spans = [
            (start, min(start + PIECE, last), last)
            for heap in (*self.heaps, *self.others)
            for first, last in populated(self._target, heap.mapping.start, heap.mapping.end)
            for start in range(first, last, PIECE)
        ]
        for start, end, last in through(spans, "libc's heap"):
            data = read_or_none(self._target, start, min(end + UNIT, last) - start)
            if data is None:
                self.unread += end - start
            else:
                yield start, data, end - start

    def at(self, address: int) -> Optional[AllocatedRegion]:
        """The block in use that has the byte at an address; of one mapped by itself, once its beginning was asked."""
        index = bisect_right(self._begins, address) - 1
        heap = self._every[index] if index >= 0 else None
        try:
            return heap.blocks.at(address) if heap is not None and address < heap.mapping.end else None
        except MemoryUnreadable:
            return None


def mappings_of_libc(target: Target, own: Iterable[tuple[int, int]]) -> list[MemoryMapping]:
    """Return the mappings in which libc's allocator may have blocks: no rank has anything of its `own` there."""
    parts = merged(own)
    return [mapping for mapping in target.maps() if is_anonymous(mapping) and not is_own(mapping, parts)]


def is_own(mapping: MemoryMapping, own: Sequence[tuple[int, int]]) -> bool:
    """Whether a rank has something in it."""
    index = bisect_right(own, (mapping.start, 1 << 64))
    before, following = own[max(index - 1, 0) : index], own[index : index + 1]
    return any(end > mapping.start for _, end in before) or any(start < mapping.end for start, _ in following)


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


def is_anonymous(mapping: MemoryMapping) -> bool:
    """Whether an allocator may have mapped it."""
    return mapping.readable and mapping.writable and not mapping.shared and mapping.path in ("", MAIN)
