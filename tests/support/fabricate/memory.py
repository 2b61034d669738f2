"""A target made of bytes: what tests of decoders, translation and unwinding read instead of a process.

Takes mappings with their contents. It is a whole `Target`, and what is not mapped can't be read, as anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import KernelThread, MemoryMapping


class SparseBytes(bytes):
    """Zeros but for some parts, by offset; parts neither touch nor overlap. Only slices of it may be asked for."""

    parts: list[tuple[int, bytes]]

    @staticmethod
    def of(parts: Mapping[int, bytes]) -> SparseBytes:
        made = SparseBytes()
        made.parts = sorted(parts.items())
        return made

    def __getitem__(self, wanted: Any) -> Any:
        data = bytearray(wanted.stop - wanted.start)
        for offset, part in self.parts:
            first, last = max(offset, wanted.start), min(offset + len(part), wanted.stop)
            if first < last:
                data[first - wanted.start : last - wanted.start] = part[first - offset : last - offset]
        return bytes(data)


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


PAGE = 4096


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
        for mapped in self.mapped:
            if mapped.start <= address < mapped.start + mapped.size and mapped.protection[0] == "r":
                at = address - mapped.start
                here = mapped.data[at : at + size].ljust(min(size, mapped.size - at), b"\0")
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


class SparseTarget(MemoryTarget):
    """One that knows which pages of its sparse mappings were never touched, as the kernel does."""

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for mapped in self.mapped:
            if mapped.start <= start < end <= mapped.start + mapped.size:
                parts = mapped.data.parts if isinstance(mapped.data, SparseBytes) else [(0, bytes(mapped.size))]
                for offset, part in parts:
                    first = max(mapped.start + offset & -PAGE, start)
                    last = min(-(-(mapped.start + offset + len(part)) // PAGE) * PAGE, end)
                    if first < last:
                        yield first, last


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


class Shaking(MemoryTarget):
    """A live target each of whose reads is of one of several moments, by chance."""

    def __init__(self, moments: Sequence[MemoryTarget], seed: int) -> None:
        super().__init__(moments[0].mapped, is_live=True)
        self.moments = moments
        self.chance = random.Random(seed)

    def read(self, address: int, size: int) -> bytes:
        return self.chance.choice(self.moments).read(address, size)

    def open_path(self, path: str) -> Optional[str]:
        return path
