"""Reads one rank's data in few large pieces, and hands out small ones.

Takes a target; holds the pieces of one rank at a time, so that a thousand ranks need no more memory than one.
"""

from __future__ import annotations

from collections.abc import Iterable

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Object, Rank, Rebase, Segment
from pieglobalsfind.target import Target

LARGEST_PIECE = 1 << 30  # bytes; a segment beyond is read in the small pieces that are asked for


class RankMemory:
    """The memory of a target as one rank's variables are read from it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pieces: list[tuple[int, bytes]] = []

    def load(self, rank: Rank, objects: Iterable[Object]) -> None:
        """Forget the last rank; read the data segments of this one's copies."""
        self._pieces = []
        for found in objects:
            for segment, start in data_segments(rank, found):
                if segment.memory_size <= LARGEST_PIECE:
                    self._load_piece(start, segment.memory_size)

    def _load_piece(self, start: int, size: int) -> None:
        try:
            self._pieces.append((start, self._target.read(start, size)))
        except MemoryUnreadable:
            return  # each variable in it will say so itself, or be readable alone

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes; raises `MemoryUnreadable`."""
        for start, data in self._pieces:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return self._target.read(address, size)


def data_segments(rank: Rank, found: Object) -> Iterable[tuple[Segment, int]]:
    """The segments of the rank's copy that hold no code, and where each begins."""
    for one in rank.placements:
        if isinstance(one, Rebase) and one.object == found.index:
            for segment in found.segments:
                start = found.base + segment.offset
                if (
                    not segment.executable
                    and one.original <= start
                    and start + segment.memory_size <= one.original + one.size
                ):
                    yield segment, one.copy + start - one.original
