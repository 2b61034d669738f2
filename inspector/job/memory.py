"""Reads one rank's data in few large pieces, and hands out small ones.

Takes a target; holds the pieces of one rank at a time, so that a thousand ranks need no more memory than one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Union

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


class RankMemory:
    """The memory of a target as one rank's variables are read from it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pieces: list[tuple[int, bytes]] = []
        self._spaces: dict[int, Union[Target, Absent]] = {}
        self._space = 0
        self._start, self._near = 0, NOTHING  # the piece of a pause's copy that was read last
        self._pages: dict[int, bytes] = {}  # of this rank, as they are now: a pause did not copy them
        self._followed: set[int] = set()  # pages that a pause did not copy
        self.is_torn = False  # whether `follow` gave anything that is of another moment

    def load(self, rank: Rank, objects: Iterable[Object]) -> None:
        """Forget the last rank; read the data segments of this one's copies."""
        self._pieces = []
        self._space = rank.pages_of
        self._start, self._near = 0, NOTHING
        self._pages.clear()
        for elf_object in objects:
            for segment, start in data_segments(rank, elf_object):
                if segment.memory_size <= LARGEST_LOADED:
                    self._load_piece(start, segment.memory_size)

    def _load_piece(self, start: int, size: int) -> None:
        try:
            self._pieces.append((start, self._read(start, size)))
        except MemoryUnreadable:
            return  # each variable in it will say so itself, or be readable alone

    def view(self, address: int, size: int) -> memoryview:
        """As `read`, without copying what was read already."""
        for start, data in self._pieces:
            if start <= address and address + size <= start + len(data):
                return memoryview(data)[address - start : address - start + size]
        return memoryview(self._read(address, size))

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes; raises `MemoryUnreadable`."""
        for start, data in self._pieces:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return self._read(address, size)

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

    def digest(self, address: int, data: memoryview) -> bytes:
        """Return what is equal for equal data alone; of large data, which begin at an address, zeros cost little."""
        if len(data) <= LARGE:
            return hashlib.sha256(data).digest()
        found = hashlib.sha256(len(data).to_bytes(8, "little"))
        behind = 0  # of the blocks that have been looked at
        space = self._target_of_rank()
        # Of a running process what it has let go of since counts as zeros, which it is now.
        for start, end in backed(space, address, address + len(data)) if not isinstance(space, Absent) else ():
            for at in range(max((start - address) // BLOCK * BLOCK, behind), end - address, BLOCK):
                block = data[at : at + BLOCK]
                behind = at + BLOCK
                if bytes(block) != ZEROS[: len(block)]:  # a view compares byte by byte
                    found.update(at.to_bytes(8, "little"))
                    found.update(block)
        return found.digest()

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
