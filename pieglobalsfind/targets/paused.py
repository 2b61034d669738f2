"""Running processes as they were at one moment: they were stopped for milliseconds, copied, and go on.

A target answers from the copy (stop_and_copy.py makes it). What was not copied is read from the running process only
where it can't change; a read of anything else fails, and is noted, so that the next pause can copy it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.memory_map import ProcMaps, mapping_at
from pieglobalsfind.ranges import Range, merged, range_at, without
from pieglobalsfind.target import KernelThread, read_or_none
from pieglobalsfind.targets.live import CHECKED_READ, LiveTarget, sparse_bytes
from pieglobalsfind.targets.stand_in import StandIn

PAGE = 4096
LARGEST_CHECKED = 1 << 28  # bytes of which each page is tried before it is asked for in the next pause
NOTHING = memoryview(b"")
NOT_COPIED = "it was not copied while the process stood still"


@dataclass(frozen=True)
class Pause:
    """How long processes stood still, all `stops` together, and how much later the last one than the first (seconds).

    `taken` is when the copy was made (UTC, ISO 8601), `clock` the same by `time.monotonic`, `processes` how many stood
    still together.
    """

    seconds: float
    skew: float
    taken: str
    processes: int = 1
    stops: int = 1
    clock: float = 0.0

    @property
    def sentence(self) -> str:
        """How figures of such a copy come about."""
        who = "the process while it" if self.processes == 1 else f"{self.processes} processes while they"
        often = f" ({self.stops} stops)" if self.stops > 1 else ""
        skew = f", the last one {1000 * self.skew:.2f} ms after the first" if self.processes > 1 else ""
        stood = f"copied from {who} stood still for {1000 * self.seconds:.1f} ms{often}{skew}"
        return f"{stood}: all figures are of one moment"


class PausedTarget(StandIn):
    """One process as it was during a pause."""

    def __init__(
        self,
        live: LiveTarget,
        pieces: Pieces,
        threads: Sequence[KernelThread],
        pause: Pause,
        untouched: Sequence[Range] = (),
        maps: Optional[ProcMaps] = None,
    ) -> None:
        super().__init__(live)
        self._may_move = maps is not None  # what is in anonymous memory
        if maps is not None:
            self._maps = maps
        self.pause = pause
        self._pieces = pieces
        self._threads = tuple(threads)
        self._untouched = untouched
        self.rest_is_live = False
        self._missed: list[Range] = []
        self._unmapped: list[Range] = []
        self.others: dict[int, PausedTarget] = {}
        self.runtime = ""  # whose data the plan was made by, for who reads the copy
        self.is_between_ranks = False  # whether a thread is, says who reads the copy
        self.lacks_ranks = False  # whether anything is unknown of a rank's thread, says who reads the copy

    def read(self, address: int, size: int) -> bytes:
        """From the copy; raises `MemoryUnreadable`, also for what was not copied and may have changed since."""
        held = self._pieces.get(address, size)
        if held is not None:
            return held
        if size > CHECKED_READ and self._untouched:
            return sparse_bytes(address, size, self.backed(address, address + size), self._read_in_parts)
        return self._read_in_parts(address, size)

    def piece(self, address: int) -> tuple[int, memoryview]:
        """Where the copied piece begins that holds an address, and its bytes; none if it was not copied."""
        return self._pieces.at(address)

    def _read_in_parts(self, address: int, size: int) -> bytes:
        parts, at, end = [], address, address + size
        while at < end:
            start, stop = self._pieces.around(at)
            if start <= at < stop:
                part = self._pieces.get(at, min(end, stop) - at)
            else:
                stop = min(end, start) if start > at else end
                part = self._zeros(at, stop) or self._read_constant(at, stop, (address, end))
            if part is None:
                raise MemoryUnreadable(address, size, NOT_COPIED)
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def _zeros(self, at: int, end: int) -> bytes:
        """What was untouched from an address on, none if that was not."""
        untouched = range_at(self._untouched, at)
        return bytes(min(end, untouched[1]) - at) if untouched is not None else b""

    def with_live_rest(self) -> PausedTarget:
        """The same, but what was not copied is read from the running process: for heaps of gigabytes."""
        paused_target = copy(self)
        paused_target.rest_is_live = True
        return paused_target

    def _read_constant(self, at: int, end: int, wanted: Range) -> Optional[bytes]:
        """What lies in memory that can't change, as far as one mapping goes; None, and noted, for anything else.

        A rank that has left may be arriving again: its pages that are not writable are zeros until it is there.
        """
        mapping = mapping_at(self._maps, at)
        if mapping is None:
            self._unmapped.append(wanted)
            raise MemoryUnreadable(wanted[0], wanted[1] - wanted[0])
        may_change = mapping.writable or (self._may_move and not mapping.path)
        if may_change and not self.rest_is_live:
            self._missed.append(wanted)
            return None
        try:
            return self.live.read(at, min(end, mapping.end) - at)
        except MemoryUnreadable:  # it has left the process since
            self._missed.append(wanted)
            return None

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """Read many ranges, None for each that was not copied."""
        return [read_or_none(self, *place) for place in places]

    def populated(self, start: int, end: int) -> Iterator[Range]:
        """What was copied of [start, end): a search finds what it found when the copy was planned."""
        return iter(self.live.populated(start, end)) if self.rest_is_live else self._pieces.within(start, end)

    def backed(self, start: int, end: int) -> Sequence[Range]:
        """All of [start, end) but what was untouched; what was not copied may hold anything."""
        return self.live.backed(start, end) if self.rest_is_live else without(start, end, self._untouched)

    def maps(self) -> ProcMaps:
        """As they were while the process stood still, if the plan was with maps, else shortly after that."""
        return self._maps

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads with their registers at the pause."""
        return self._threads

    @property
    def was_refused(self) -> bool:
        """Return whether anything was asked for that was mapped, and not copied."""
        return bool(self._missed)

    def forget_misses(self) -> None:
        """What was refused so far is not needed: a search followed a pointer that leads to nothing."""
        self._missed.clear()
        self._unmapped.clear()

    def missed(self) -> tuple[Range, ...]:
        """What reads were refused for because it was not copied, in pages, as far as there is anything to copy."""
        ranges = list(self._missed)
        if self._unmapped:  # it may have been mapped since the map was read
            now = self.live.maps()
            ranges += [span for span in self._unmapped if mapping_at(now, span[0]) is not None]
        pages = merged((start & -PAGE, -(-end // PAGE) * PAGE) for start, end in ranges)
        if sum(end - start for start, end in pages) > LARGEST_CHECKED:
            return pages
        return merged((page, page + PAGE) for page in self._readable(pages))

    def _readable(self, ranges: Iterable[Range]) -> Iterator[int]:
        """The pages that can be read: a guard page would have all lost that is copied in one piece with it."""
        places = [(page, 1) for start, end in ranges for page in range(start, end, PAGE)]
        return (page for (page, _), byte in zip(places, self.live.read_many(places)) if byte is not None)


class Pieces:
    """What was copied, in ascending order of address, without overlaps."""

    def __init__(self, pieces: Iterable[tuple[int, memoryview]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._data: list[memoryview] = []
        for start, data in sorted(pieces, key=lambda piece: piece[0]):
            end = start + len(data)
            if self._ends and start < self._ends[-1]:
                data = data[self._ends[-1] - start :]
                start = self._ends[-1]
            if start < end:
                self._starts.append(start)
                self._ends.append(end)
                self._data.append(data)

    def get(self, address: int, size: int) -> Optional[bytes]:
        """None unless all of it lies in one piece."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address + size > self._ends[at]:
            return None
        begin = address - self._starts[at]
        return bytes(self._data[at][begin : begin + size])

    def at(self, address: int) -> tuple[int, memoryview]:
        """The piece that holds an address: where it begins, and its bytes; none if there is none."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return 0, NOTHING
        return self._starts[at], self._data[at]

    def around(self, address: int) -> Range:
        """The piece that holds an address, or the next one."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            at += 1
        return (self._starts[at], self._ends[at]) if at < len(self._starts) else (0, 0)

    def within(self, start: int, end: int) -> Iterator[Range]:
        """The parts of [start, end) that there are."""
        at = max(bisect_right(self._starts, start) - 1, 0)
        while at < len(self._starts) and self._starts[at] < end:
            low, high = max(start, self._starts[at]), min(end, self._ends[at])
            if low < high:
                yield low, high
            at += 1
