"""A target made of bytes: what tests of decoders, translation and unwinding read instead of a process.

Takes mappings with their contents. It is a whole `Target`, and what is not mapped can't be read, as anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import KernelThread, MemoryMapping


@dataclass
class Mapped:
    """One mapping; `data` may be shorter, the rest is zeros."""

    start: int
    size: int
    data: bytes = b""
    path: str = ""
    protection: str = "rw-"
    offset: int = 0

    @property
    def mapping(self) -> MemoryMapping:
        r, w, x = (one != "-" for one in self.protection)
        return MemoryMapping(self.start, self.start + self.size, r, w, x, self.offset, self.path)


@dataclass
class MemoryTarget:
    """A stopped target, or with `is_live` a running one whose bytes the test changes between reads."""

    mapped: list[Mapped]
    is_live: bool = False
    kernel_threads: tuple[KernelThread, ...] = ()
    description: str = "fabricated target"
    reads: list[tuple[int, int]] = field(default_factory=list)

    def read(self, address: int, size: int) -> bytes:
        self.reads.append((address, size))
        return self._content(address, size)

    def _content(self, address: int, size: int) -> bytes:
        """From several mappings if they touch, as of any process."""
        for one in self.mapped:
            if one.start <= address < one.start + one.size and one.protection[0] == "r":
                at = address - one.start
                here = one.data[at : at + size].ljust(min(size, one.size - at), b"\0")
                return here if len(here) == size else here + self._content(address + len(here), size - len(here))
        raise MemoryUnreadable(address, size)

    def maps(self) -> Sequence[MemoryMapping]:
        return [one.mapping for one in sorted(self.mapped, key=lambda one: one.start)]

    def threads(self) -> Sequence[KernelThread]:
        return self.kernel_threads

    def open_path(self, path: str) -> Optional[str]:
        return None

    def file_identity(self, path: str) -> Optional[bytes]:
        return None


class Changing(MemoryTarget):
    """Another moment of a job from each question for its map on; the map is the one of the moment before."""

    def __init__(self, moments: Iterable[MemoryTarget]) -> None:
        self.moments = iter(moments)
        self.before = self.now = next(self.moments)
        self.is_live = True

    def maps(self) -> list[MemoryMapping]:
        self.before, self.now = self.now, next(self.moments, self.now)
        return list(self.before.maps())

    def read(self, address: int, size: int) -> bytes:
        return self.now.read(address, size)

    def threads(self) -> Sequence[KernelThread]:
        return self.now.threads()

    def open_path(self, path: str) -> Optional[str]:
        return path
