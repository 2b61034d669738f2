"""The port through which everything else sees a target: a live process, a core file, a debugger's inferior, a snapshot.

A target hands out bytes, mappings and kernel threads. It knows nothing of ranks, ELF or DWARF, never writes to what it
reads, and never calls into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional, Protocol, Union

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent

PIECE = 1 << 22  # bytes of large memory that are read at once


class MemoryMapping(NamedTuple):  # a dataclass takes four times as long to make, and there are tens of thousands
    """One line of the target's memory map.

    `start` is inclusive, `end` exclusive. `path` is the file's path as the target's kernel names it, "[heap]" and the
    like, "/memfd:NAME (deleted)", or "" for anonymous memory. `offset` is the position of `start` in the file.
    """

    start: int
    end: int
    readable: bool
    writable: bool
    executable: bool
    offset: int
    path: str
    shared: bool = False


@dataclass(frozen=True)
class KernelThread:
    """A kernel thread of the target, and its registers by DWARF number (x86-64: 7 rsp, 16 rip) as far as known.

    Registers may be a subset: a blocked thread of a running process shows only its pc and sp.
    """

    tid: int
    registers: Union[Mapping[int, int], Absent]


class Target(Protocol):
    """What can be asked of a target. Implementations stand in `targets/`, and in the debuggers' extensions."""

    @property
    def description(self) -> str:
        """How to name it in a sentence: "process 4711", "core file core.4711"."""

    @property
    def is_live(self) -> bool:
        """Whether it may change between two reads."""

    def read(self, address: int, size: int) -> bytes:
        """Return exactly `size` bytes from `address`; raises `MemoryUnreadable` if any of them can't be had."""

    def maps(self) -> Sequence[MemoryMapping]:
        """The memory map in ascending order of address, as of now."""

    def threads(self) -> Sequence[KernelThread]:
        """The kernel threads, as of now."""

    def open_path(self, path: str) -> Optional[str]:
        """Where the target's file `path` can be opened by us (another root directory, a sysroot), or None."""

    def file_identity(self, path: str) -> Optional[bytes]:
        """The build-id of the mapped file `path` as the target itself holds it in memory, or None if it has none."""


def read_many(target: Target, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
    """Many (address, size) at once, in their order; None for what can't be had.

    A target that can read them together has a method of that name; of a running process they are of about one moment.
    """
    together: Optional[Callable[[Sequence[tuple[int, int]]], list[Optional[bytes]]]]
    together = getattr(target, "read_many", None)
    return together(places) if together is not None else [read_or_none(target, *place) for place in places]


def populated(target: Target, start: int, end: int) -> Iterable[tuple[int, int]]:
    """Return (start, end) of what may hold anything but zeros in a range of private anonymous memory, ascending.

    A target that knows which pages were never touched, or which it does not hold, has a method of that name.
    """
    held: Optional[Callable[[int, int], Iterable[tuple[int, int]]]] = getattr(target, "populated", None)
    return held(start, end) if held is not None else ((start, end),)


def backed(target: Target, start: int, end: int) -> Iterable[tuple[int, int]]:
    """Return (start, end) of what may hold anything but zeros in a range of any memory, ascending.

    A target that can tell so at once has a method of that name.
    """
    held: Optional[Callable[[int, int], Iterable[tuple[int, int]]]] = getattr(target, "backed", None)
    return held(start, end) if held is not None else ((start, end),)


def pieces(target: Target, start: int, end: int, overlap: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (address, bytes) of a range of private anonymous memory, ascending, without pages that were never touched.

    Each piece has at most `PIECE` bytes of its own, and up to `overlap` bytes of what follows it. What can't be read is
    left out.
    """
    for first, last in populated(target, start, end):
        for at in range(first, last, PIECE):
            data = read_or_none(target, at, min(PIECE + overlap, last - at))
            if data is not None:
                yield at, data


def word_at(target: Target, address: int) -> int:
    """The 8 bytes at an address as a number; raises `MemoryUnreadable`."""
    return int.from_bytes(target.read(address, 8), "little")


def file_starts(maps: Iterable[MemoryMapping]) -> Iterator[MemoryMapping]:
    """Where readable files are mapped from their first bytes on: ELF headers."""
    return (mapping for mapping in maps if mapping.offset == 0 and mapping.readable and mapping.path.startswith("/"))


def system_loaders(maps: Iterable[MemoryMapping]) -> Iterator[MemoryMapping]:
    """Where the system's dynamic loader begins: `/lib64/ld-linux-x86-64.so.2`, `/lib/x86_64-linux-gnu/ld-2.31.so`."""
    return (mapping for mapping in file_starts(maps) if mapping.path.rpartition("/")[2].startswith("ld-"))


def word_or_none(target: Target, address: int) -> Optional[int]:
    """The 8 bytes at an address as a number; None if they can't be had."""
    data = read_or_none(target, address, 8)
    return None if data is None else int.from_bytes(data, "little")


def read_or_none(target: Target, address: int, size: int) -> Optional[bytes]:
    """None if it can't be had."""
    try:
        return target.read(address, size)
    except MemoryUnreadable:
        return None
