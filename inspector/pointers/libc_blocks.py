"""The blocks between two places of a heap of the GNU C library, by the words that its allocator keeps between them.

Takes a target; walks from block to block once (glibc, malloc/malloc.c: before each block its size and three flags), and
believes nothing unless all words agree. It keeps only where each piece of the walk began, a few megabytes for a
heap of many gigabytes; a caller that asks for a block has its piece walked again.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple, Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import Target

from .typed_heap_objects import AllocatedRegion

UNIT, HEADER, BORROWED = 16, 16, 8  # bytes: of sizes, before what a block's owner has, of the next block's header
BEFORE_IS_USED, IS_MAPPED, OF_THREAD, FLAGS = 1, 2, 4, 7
PAGE = 1 << 12
STEP = 1 << 15  # bytes that are walked through at once
KEPT = 1024  # pieces whose blocks are kept
ATTEMPTS, BETWEEN = 5, 0.002  # seconds; of a running process the words may change while they are read


class WalkState(NamedTuple):
    """Where a walk is: the next header, the one before it, and that one's flags."""

    at: int
    before: int
    flags: int


class WalkSpan(NamedTuple):
    """The walk from `first` to `end`; `kind` is `OF_THREAD` in a heap of a thread, else 0."""

    first: int
    end: int
    kind: int


class WalkedBlocks(NamedTuple):
    """Where the blocks in use of a piece begin and end, ascending, and how the walk goes on."""

    starts: array[int]
    ends: array[int]
    state: WalkState


class BlockChain:
    """The blocks in use of a walk."""

    def __init__(self, target: Target, span: WalkSpan) -> None:
        self._target = target
        self._span = span
        self._ats, self._befores = array("Q", (span.first,)), array("Q", (span.first,))
        self._flags, self._used = bytearray(1), array("Q", (0,))  # the latter: bytes in use so far
        self._piece = lru_cache(maxsize=KEPT)(self._walk_again)

    @property
    def in_use(self) -> int:
        """The bytes in blocks in use."""
        return self._used[-1]

    @property
    def steps(self) -> int:
        """How many pieces have been walked through."""
        return len(self._ats) - 1

    @property
    def last(self) -> WalkState:
        """Where the walk is."""
        return WalkState(self._ats[-1], self._befores[-1], self._flags[-1])

    def add(self, walked: WalkedBlocks) -> None:
        """Go on to where a piece ends."""
        self._ats.append(walked.state.at)
        self._befores.append(walked.state.before)
        self._flags.append(walked.state.flags)
        self._used.append(self._used[-1] + sum(walked.ends) - sum(walked.starts))

    def step_back(self, count: int) -> None:
        """Forget the last pieces."""
        kept = max(len(self._ats) - count, 1)
        del self._ats[kept:], self._befores[kept:], self._flags[kept:], self._used[kept:]

    def at(self, address: int) -> Optional[AllocatedRegion]:
        """The block in use that has the byte at an address; raises `MemoryUnreadable` if its header can't be read."""
        index = bisect_right(self._befores, address - HEADER) - 1
        walked = self._piece(index) if index >= 0 else None
        place = bisect_right(walked.starts, address) - 1 if walked is not None else -1
        if walked is None or place < 0 or address >= walked.ends[place]:
            return None
        return AllocatedRegion(walked.starts[place], walked.ends[place] - walked.starts[place])

    def _walk_again(self, index: int) -> Optional[WalkedBlocks]:
        state = WalkState(self._ats[index], self._befores[index], self._flags[index])
        return walked_piece(self._target, self._span, state) if state.at + HEADER <= self._span.end else None


def chain_of(target: Target, span: WalkSpan) -> Optional[BlockChain]:
    """The blocks of a span; None if any word contradicts another, or if none is in use. Raises `MemoryUnreadable`.

    Of a running process a piece that contradicts itself is read again, with some before it.
    """
    chain = BlockChain(target, span)
    furthest = tries = 0
    while chain.last.at + HEADER <= span.end:
        walked = walked_piece(target, span, chain.last)
        if walked is not None:
            chain.add(walked)
            tries = tries if chain.steps <= furthest else 0
            furthest = max(furthest, chain.steps)
        elif target.is_live and furthest and tries < ATTEMPTS:
            time.sleep(BETWEEN * tries)
            chain.step_back(tries)
            tries += 1
        else:
            return None
    return chain if chain.last.at == span.end and chain.in_use else None


def walked_piece(target: Target, span: WalkSpan, state: WalkState) -> Optional[WalkedBlocks]:
    """The blocks of the next piece; None if any word contradicts another. Raises `MemoryUnreadable`.

    The last one is free, the rest of the heap; or it has no size, where a thread's heap is followed by another one. Of
    each other the flag of the one after it says whether it is used.
    """
    first, end, kind = span
    base, before, flags = state
    data = target.read(base, min(STEP, end - base))
    words = array("Q", data[: len(data) & -8])
    starts, ends = array("Q"), array("Q")
    last, at, limit, wrong = 0, base, base + len(data) - HEADER, (IS_MAPPED | OF_THREAD) & ~kind
    while at <= limit:
        head = words[(at - base) // 8 + 1]
        size = head & ~FLAGS or (HEADER if kind and at + HEADER == end else 0)
        if head & wrong or size < HEADER or size % UNIT or size > end - at:
            return None
        if not head & BEFORE_IS_USED:
            if at > first and words[(at - base) // 8] != at - before:  # a free one has its size at its end, too
                return None
        elif at > first and at - before != HEADER:  # that size has what ends a heap that is followed by another one
            if flags & OF_THREAD != kind:  # free ones need not say it
                return None
            starts.append(before + HEADER)
            ends.append(at + BORROWED)
        if head == last and size > HEADER and head & (BEFORE_IS_USED | OF_THREAD) == BEFORE_IS_USED | kind:
            more = count_alike(words, (at + size - base) // 8 + 1, head, (min(limit, end - size) - at) // size)
            starts.extend(range(at + HEADER, at + HEADER + more * size, size))
            ends.extend(range(at + size + BORROWED, at + size + BORROWED + more * size, size))
            at += more * size
        before, at, flags, last = at, at + size, head & FLAGS, head
    return WalkedBlocks(starts, ends, WalkState(at, before, flags))


def count_alike(words: array[int], first: int, head: int, most: int) -> int:
    """How many headers follow that are like one: nodes of a container are of one size, and many in a row are in use."""
    heads = words[first : first + most * (head & ~FLAGS) // 8 : (head & ~FLAGS) // 8] if most > 0 else words[:0]
    if heads.count(head) == len(heads):
        return len(heads)
    return next(count for count, other in enumerate(heads) if other != head)


class MappedBlocks:
    """Blocks that were mapped one by one, in a mapping; each is known once its beginning was asked for."""

    def __init__(self, target: Target, end: int) -> None:
        self._target = target
        self._end = end
        self._starts, self._ends = array("Q"), array("Q")

    def at(self, address: int) -> Optional[AllocatedRegion]:
        """The block that has the byte at an address, or begins there."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._ends[index]:
            return AllocatedRegion(self._starts[index], self._ends[index] - self._starts[index])
        end = self._end_of(address)
        following = index + 1
        if end is None or (following < len(self._starts) and self._starts[following] < end):
            return None
        self._starts.insert(following, address)
        self._ends.insert(following, end)
        return AllocatedRegion(address, end - address)

    def _end_of(self, address: int) -> Optional[int]:
        """Where the block ends that begins at an address, None if none does."""
        if address % PAGE != HEADER:
            return None
        try:
            before, head = array("Q", self._target.read(address - HEADER, HEADER))
        except MemoryUnreadable:
            return None
        end = address - HEADER + (head & ~FLAGS)
        is_mapped = head & FLAGS == IS_MAPPED and not before and end % PAGE == 0
        return end if is_mapped and address < end <= self._end else None
