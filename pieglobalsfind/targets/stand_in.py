"""Targets that stand in for a live process; and one that notes what is read of it, before the process is stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Optional

from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.ranges import Range, intersected, merged
from pieglobalsfind.target import PIECE, KernelThread, MemoryMapping
from pieglobalsfind.targets.live import LiveTarget

GRAIN = 256  # bytes; what was read in a rehearsal is copied in such pieces


class StandIn:
    """What a stand-in for a live process has of it."""

    def __init__(self, live: LiveTarget) -> None:
        self.live = live

    @cached_property
    def _maps(self) -> ProcMaps:
        return self.live.maps()

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self.live.pid

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return self.live.description

    @property
    def is_live(self) -> bool:
        """Return whether readers must expect changes: not of a copy, and a rehearsal does not care."""
        return False

    def open_path(self, path: str) -> Optional[str]:
        """Return a path by which this process can open the target's file, or None."""
        return self.live.open_path(path)

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        return self.live.file_identity(path)

    def check_is_alive(self) -> None:
        """Raise `TargetEndedError` if the process has ended."""
        self.live.check_is_alive()

    def check_program(self) -> None:
        """Raise `TargetError` if the process runs another program now."""
        self.live.check_program()


class RecordedTarget(StandIn):
    """A running process, read as if it stood still, and everything that is read of its writable memory noted.

    What it gives may be torn: it tells where things lie, not what they are.
    """

    def __init__(self, live: LiveTarget) -> None:
        super().__init__(live)
        self._read: list[Range] = []
        self._searched = 0, 0

    def read(self, address: int, size: int) -> bytes:
        """Read memory and note the range."""
        data = self.live.read(address, size)
        self._note(address, size)
        return data

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """Read many ranges and note them."""
        pieces = self.live.read_many(places)
        for place, data in zip(places, pieces):
            if data is not None:
                self._note(*place)
        return pieces

    def _note(self, address: int, size: int) -> None:
        first, last = self._searched
        if first <= address < last and (address - first) % PIECE == 0 and size >= min(PIECE, last - address):
            return  # a piece of what is searched: what is found there is read again
        self._read.append((address & -GRAIN, -(-(address + size) // GRAIN) * GRAIN))

    def populated(self, start: int, end: int) -> Iterator[Range]:
        """Yield the populated ranges, and note which one is being searched."""
        for first, last in self.live.populated(start, end):
            self._searched = first, last
            yield first, last
        self._searched = 0, 0

    def maps(self) -> Sequence[MemoryMapping]:
        """Return the memory map."""
        return self._maps

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads."""
        return self.live.threads()

    def noted(self, with_maps: bool) -> tuple[Range, ...]:
        """What was read of memory that may change, or, of a process whose maps change, may leave it."""
        changing = [mapping for mapping in self._maps if mapping.writable or (with_maps and not mapping.path)]
        return intersected(merged(self._read), [(mapping.start, mapping.end) for mapping in changing])
