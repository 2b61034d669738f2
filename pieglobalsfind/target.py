"""The port through which everything else sees a target: a live process, a core file, a debugger's inferior, a snapshot.

A target hands out bytes, mappings and kernel threads. It knows nothing of ranks, ELF or DWARF, never writes to what it
reads, and never calls into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.facts import NamedTuple, dataclass
from pieglobalsfind.hints import Optional, Protocol, Union
from pieglobalsfind.model import Absent


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


def parts(target: Target, start: int, end: int) -> Iterable[tuple[int, bytes]]:
    """(address, bytes) of [start, end) as far as it can be had: all of it, or nothing.

    A target that was made of parts, and so can have some of it, has a method of that name.
    """
    held: Optional[Callable[[int, int], Iterable[tuple[int, bytes]]]] = getattr(target, "parts", None)
    if held is not None:
        return held(start, end)
    data = read_or_none(target, start, end - start)
    return () if data is None else ((start, data),)


def read_or_none(target: Target, address: int, size: int) -> Optional[bytes]:
    """None if it can't be had."""
    try:
        return target.read(address, size)
    except MemoryUnreadable:
        return None
