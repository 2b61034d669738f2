"""Reads one rank's data in few large pieces, and hands out small ones.

Takes a target; holds the pieces of one rank at a time, so that a thousand ranks need no more memory than one.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from typing import Optional, Union

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Object, Rank, Segment
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.target import Target, backed
from pieglobalsfind.targets import in_address_space
from pieglobalsfind.targets.paused import NOTHING, PAGE, PausedTarget

LARGE, BLOCK = 1 << 20, 1 << 14  # bytes: data of which zeros are passed over, in blocks of this size
ZEROS = bytes(BLOCK)
LARGEST_LOADED = 1 << 26  # bytes; a segment beyond is read in the small pieces that are asked for
MOST_FOLLOWED = 1 << 17  # pages
LARGEST_PIECE = 1 << 30  # bytes that are compared or searched as a whole


class RankData:
    """The memory of a target as one rank's variables are read from it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        # What was loaded, ascending: where pieces begin and end, and their bytes, None for zeros.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._pieces: list[Optional[bytes]] = []
        self._spaces: dict[int, Union[Target, Absent]] = {}
        self._space = 0
        self._start, self._near = 0, NOTHING  # the piece of a pause's copy that was read last
        self._pages: dict[int, bytes] = {}  # of this rank, as they are now: a pause did not copy them
        self._followed: set[int] = set()  # pages that a pause did not copy
        self.is_torn = False  # whether `follow` gave anything that is of another moment

    def load(self, rank: Rank, objects: Iterable[Object]) -> None:
        """Forget the last rank; read the data segments of this one's copies."""
        self._starts, self._ends, self._pieces = [], [], []
        self._space = rank.pages_of
        self._start, self._near = 0, NOTHING
        self._pages.clear()
        segments = [segment for elf_object in objects for segment in data_segments(rank, elf_object)]
        for segment, start in sorted(segments, key=lambda segment_and_start: segment_and_start[1]):
            if segment.memory_size <= LARGEST_LOADED:
                with suppress(MemoryUnreadable):  # each variable in it will say so itself, or be readable alone
                    self._load_segment(start, start + segment.memory_size)

    def _load_segment(self, start: int, end: int) -> None:
        """Read a segment; of a large one only what may be anything but zeros."""
        held = self._backed(start, end) if end - start > LARGE else [(start, end)]
        pieces = [(first, last, self._read(first, last - first)) for first, last in held]
        at = start
        for first, last, data in pieces:
            if at < first:
                self._append(at, first, None)
            self._append(first, last, data)
            at = last
        if at < end:
            self._append(at, end, None)

    def _append(self, start: int, end: int, data: Optional[bytes]) -> None:
        self._starts.append(start)
        self._ends.append(end)
        self._pieces.append(data)

    def view(self, address: int, size: int) -> memoryview:
        """As `read`, without copying what was read already."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address + size > self._ends[index]:
            return memoryview(self._read(address, size))
        piece, at = self._pieces[index], address - self._starts[index]
        if piece is None:
            return memoryview(ZEROS)[:size] if size <= BLOCK else memoryview(bytes(size))
        return memoryview(piece)[at : at + size]

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes; raises `MemoryUnreadable`."""
        return bytes(self.view(address, size))

    def follow(self, address: int, size: int) -> bytes:
        """As `read`, but what a pause did not copy is read as it is now: it leads to what the next one has to copy.

        Such bytes are of another moment, which `is_torn` says: no value may be shown of them.
        """
        at = address - self._start
        if at >= 0 and at + size <= len(self._near):  # as of nearly all nodes and elements of one rank
            return bytes(self._near[at : at + size])
        begin = address % PAGE
        page = self._pages.get(address - begin)
        if page is not None and begin + size <= PAGE:
            self.is_torn = True
            return page[begin : begin + size]
        try:
            data = self.read(address, size)
            space = self._target_of_rank()
            if isinstance(space, PausedTarget):
                self._start, self._near = space.piece(address)
            return data
        except MemoryUnreadable:
            space = self._target_of_rank()
            if not isinstance(space, PausedTarget) or len(self._followed) > MOST_FOLLOWED:
                raise
            if begin + size <= PAGE:
                page = self._pages[address - begin] = space.live.read(address - begin, PAGE)
                data = page[begin : begin + size]
            else:
                data = space.live.read(address, size)
            self._followed.update(range(address // PAGE, (address + size) // PAGE + 1))
            self.is_torn = True
            return data

    def digest(self, address: int, size: int) -> bytes:
        """Return what is equal for equal bytes alone; of many bytes, zeros that take no memory are not read."""
        if size <= LARGE:
            return hashlib.sha256(self.view(address, size)).digest()
        digest = hashlib.sha256(size.to_bytes(8, "little"))
        behind = 0  # of the blocks that have been looked at
        # Of a running process what it has let go of since counts as zeros, which it is now.
        for start, end in self._backed(address, address + size):
            for at in range(max((start - address) // BLOCK * BLOCK, behind), end - address, BLOCK):
                block = self.read(address + at, min(BLOCK, size - at))
                behind = at + BLOCK
                if block != ZEROS[: len(block)]:
                    digest.update(at.to_bytes(8, "little"))
                    digest.update(block)
        return digest.digest()

    def _backed(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        """What of [start, end) may be anything but zeros."""
        space = self._target_of_rank()
        if isinstance(space, Absent):
            raise MemoryUnreadable(start, end - start, space.reason)
        return backed(space, start, end)

    def _read(self, address: int, size: int) -> bytes:
        """Through the page tables of the rank's own process, where it has one."""
        space = self._target_of_rank()
        if isinstance(space, Absent):
            raise MemoryUnreadable(address, size, space.reason)
        return space.read(address, size)

    def _target_of_rank(self) -> Union[Target, Absent]:
        if self._space not in self._spaces:
            self._spaces[self._space] = in_address_space(self._target, self._space)
        return self._spaces[self._space]


def data_segments(rank: Rank, elf_object: Object) -> Iterable[tuple[Segment, int]]:
    """The segments that hold no code of what the rank uses, its copy or the original, and where each begins."""
    for segment in elf_object.segments:
        start = data_place(rank, elf_object, elf_object.base + segment.offset)
        if isinstance(start, int) and not segment.executable and segment.memory_size:
            yield segment, start
