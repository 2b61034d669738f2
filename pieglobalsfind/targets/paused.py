"""Running processes as they were at one moment: stopped for milliseconds, copied, and read after they continue.

Takes live targets and what is to be copied of each (`Plan`); gives targets that answer from the copies. What was not
copied is read from the running process only where it can't change; a read of anything else fails, and is noted, so that
the next pause can copy it. It knows nothing of ranks.
"""

from __future__ import annotations

import array
import gc
import mmap
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable, NotStoppableError
from pieglobalsfind.memory_map import ProcMaps, mapping_at
from pieglobalsfind.target import PIECE, KernelThread, MemoryMapping, read_or_none
from pieglobalsfind.targets.live import CHECKED_READ, LiveTarget, sparse_bytes
from pieglobalsfind.targets.priority import highest
from pieglobalsfind.targets.ptrace import Standstill, by_dwarf_number, raw_pc_and_stack_pointer, raw_registers
from pieglobalsfind.targets.scattered_words import ScatteredWords

Range = tuple[int, int]  # start, end

PAGE = 4096
GRAIN = 256  # bytes; what was read in a rehearsal is copied in such pieces
BELOW = 512  # bytes below a stack pointer that are in use: the red zone, and what a switch saves
LARGEST_COPY = 1 << 30  # bytes
SMALL_GROWTH, LARGEST_GROWTH = 1 << 16, 1 << 20  # bytes by which stacks may have grown when the process stands still
NEAR = 1 << 18  # bytes from a stack pointer on that are copied of a stack that no plan knows
LARGEST_CHECKED = 1 << 28  # bytes of which each page is tried before it is asked for in the next pause
MOST_SETTLING = 100  # times that a process is let go at once because a thread stood between two ranks
NOTHING = memoryview(b"")
NOT_COPIED = "it was not copied while the process stood still"
TOO_LARGE = f"more than {LARGEST_COPY >> 30} GB would have to be copied while the process stands still"


@dataclass(frozen=True)
class StackPlan:
    """A stack of which the part in use is copied: from the word at `pointer` (0: unknown), or a thread's stack pointer.

    `expected` is how many bytes at its end are copied where neither leads into it.
    """

    start: int
    end: int
    pointer: int
    expected: int


@dataclass(frozen=True)
class Plan:
    """What is copied of a process; `unsettled` is code in which a thread has left one rank and not yet saved it.

    `untouched`, ascending, are zeros that the process has no memory for: nothing to copy, unless it writes there before
    it stands still. `other_stacks`: what threads have put last on stacks that are not in `stacks` is copied, too.
    `with_maps`: so is the memory map, which may change soon.
    """

    ranges: tuple[Range, ...] = ()
    stacks: tuple[StackPlan, ...] = ()
    unsettled: tuple[Range, ...] = ()
    untouched: tuple[Range, ...] = ()
    other_stacks: bool = False
    with_maps: bool = False

    def enlarged(self, ranges: Iterable[Range]) -> Plan:
        """Return a plan with more ranges."""
        return replace(self, ranges=merged((*self.ranges, *ranges)))


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


class _OfProcess:
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


class PausedTarget(_OfProcess):
    """One process as it was during a pause."""

    def __init__(
        self,
        live: LiveTarget,
        pieces: _Pieces,
        threads: Sequence[KernelThread],
        pause: Pause,
        untouched: Sequence[Range] = (),
        maps: Optional[ProcMaps] = None,
    ) -> None:
        super().__init__(live)
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
        index = bisect_right(self._untouched, (at, 1 << 64)) - 1
        return bytes(max(0, min(end, self._untouched[index][1]) - at)) if index >= 0 else b""

    def with_live_rest(self) -> PausedTarget:
        """The same, but what was not copied is read from the running process: for heaps of gigabytes."""
        paused_target = copy(self)
        paused_target.rest_is_live = True
        return paused_target

    def _read_constant(self, at: int, end: int, wanted: Range) -> Optional[bytes]:
        """What lies in memory that is not writable, as far as one mapping goes; None, and noted, for anything else."""
        mapping = mapping_at(self._maps, at)
        if mapping is None:
            self._unmapped.append(wanted)
            raise MemoryUnreadable(wanted[0], wanted[1] - wanted[0])
        if mapping.writable and not self.rest_is_live:
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

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        return self.live.file_identity(path)

    def check_is_alive(self) -> None:
        """Raise `TargetEndedError` if the process has ended."""
        self.live.check_is_alive()

    def check_program(self) -> None:
        """Raise `TargetError` if the process runs another program now."""
        self.live.check_program()

    def forget_misses(self) -> None:
        """What was refused so far is not needed: a search followed a pointer that leads to nothing."""
        self._missed.clear()
        self._unmapped.clear()

    def missed(self) -> tuple[Range, ...]:
        """What reads were refused for because it was not copied, in pages, as far as there is anything to copy."""
        found = list(self._missed)
        if self._unmapped:  # it may have been mapped since the map was read
            now = self.live.maps()
            found += [one for one in self._unmapped if mapping_at(now, one[0]) is not None]
        pages = merged((start & -PAGE, -(-end // PAGE) * PAGE) for start, end in found)
        if sum(end - start for start, end in pages) > LARGEST_CHECKED:
            return pages
        return merged((page, page + PAGE) for page in self._readable(pages))

    def _readable(self, ranges: Iterable[Range]) -> Iterator[int]:
        """The pages that can be read: a guard page would have all lost that is copied in one piece with it."""
        places = [(page, 1) for start, end in ranges for page in range(start, end, PAGE)]
        return (page for (page, _), byte in zip(places, self.live.read_many(places)) if byte is not None)


class _Pieces:
    """What was copied, in ascending order of address, without overlaps."""

    def __init__(self, pieces: Iterable[tuple[int, memoryview]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._data: list[memoryview] = []
        for start, data in sorted(pieces, key=lambda one: one[0]):
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


# ---- the pause ----


class Room:
    """What the next pause of one process uses again: memory, whose first use costs most, and where stacks began."""

    def __init__(self) -> None:
        self._view = memoryview(b"")
        self._copier: Optional[_Copier] = None

    def copier(self, live: LiveTarget, plan: Plan) -> _Copier:
        """The copier of the last pause, if it was of the same plan."""
        if self._copier is None or self._copier.live is not live or self._copier.plan is not plan:
            self._copier = _Copier(live, plan, self)
        return self._copier

    def of(self, size: int) -> memoryview:
        """At least so many bytes; what they held is lost."""
        if len(self._view) < size:
            self._view = _room(size)
        return self._view


def pause(
    processes: Sequence[tuple[LiveTarget, Plan]],
    room: Optional[Room] = None,
    again: Optional[Callable[[], Sequence[tuple[LiveTarget, Plan]]]] = None,
) -> list[PausedTarget]:
    """Stop all of them, copy what the plans say, and let all of them continue.

    `room` is for one process of which the last pause's copy is not needed any more. `again` makes other plans while the
    processes stand still, which takes longer: for those that change faster than a plan can be made. Raises
    `TargetError` if one may not be traced, has ended, or if a plan is too large.
    """
    copiers = _sized([(room or Room()).copier(live, plan) for live, plan in processes])
    collects = gc.isenabled()
    gc.disable()
    try:
        copiers, stopped = _copied(copiers, again)
    finally:
        if collects:
            gc.enable()
    return [copier.target(stopped) for copier in copiers]


def _sized(copiers: list[_Copier]) -> list[_Copier]:
    """The same; raises `NotStoppableError` if they would copy too much."""
    if sum(copier.size for copier in copiers) > LARGEST_COPY:
        raise NotStoppableError(TOO_LARGE, "name fewer ranks, or take a core file with gcore")
    return copiers


def _copied(
    copiers: list[_Copier], again: Optional[Callable[[], Sequence[tuple[LiveTarget, Plan]]]]
) -> tuple[list[_Copier], Pause]:
    """Which copiers have copied, and how long that took."""
    seconds = 0.0
    for _ in range(MOST_SETTLING):
        with highest():
            standstill = Standstill([copier.live.pid for copier in copiers])
            try:
                taken, clock = datetime.now(timezone.utc).isoformat(timespec="milliseconds"), time.monotonic()
                is_settled = _is_settled(copiers, standstill)
                if is_settled and again is not None:
                    copiers = _sized([_Copier(live, plan, Room()) for live, plan in again()])
                    is_settled = _is_settled(copiers, standstill)
                for copier in copiers if is_settled else ():
                    copier.copy()
            finally:
                standstill.release()
                seconds += standstill.ended - standstill.began
        if is_settled:
            return copiers, Pause(seconds, standstill.skew, taken, len(copiers), clock=clock)
    raise NotStoppableError("the runtime switched ranks at every moment that was looked at", "try again")


def _is_settled(copiers: Sequence[_Copier], standstill: Standstill) -> bool:
    """Read all registers; False if a thread stands between two ranks."""
    for copier in copiers:
        copier.read_registers(standstill)
    return all(copier.is_settled for copier in copiers)


class _Copier:
    """Copies one process while it stands still; everything that can be is done before, or after.

    Before the pause, `_vectors` says where each stack's part in use began then, or in the last pause. The pause changes
    it for those stacks that have another one now.
    """

    def __init__(self, live: LiveTarget, plan: Plan, room: Room) -> None:
        self.live = live
        self.plan = plan
        self._maps_then: Optional[ProcMaps] = None
        self._unsettled = plan.unsettled
        self._untouched = plan.untouched
        self._other_stacks = plan.other_stacks
        self._maps = live.maps() if plan.other_stacks else ()
        stacks = sorted(plan.stacks, key=lambda one: one.start)
        self._starts = [stack.start for stack in stacks]
        self._ends = [stack.end for stack in stacks]
        self._expected = [max(stack.start, stack.end - stack.expected) for stack in stacks]
        self._pointers = ScatteredWords(live, [stack.pointer for stack in stacks])
        self._words = self._pointers.read()
        begins = [self._begin_of(at, pointer) for at, pointer in enumerate(self._words)]
        self._vectors = _vectors((*plan.ranges, *zip(begins, self._ends)))
        self._first_stack = 2 * len(plan.ranges)
        self.size = sum(self._vectors[1::2])
        self._room = room.of(min(self.size, LARGEST_COPY) + min(self.size // 4 + SMALL_GROWTH, LARGEST_GROWTH))
        self._registers: list[tuple[int, Optional[bytes]]] = []
        self._lost: list[int] = []

    def read_registers(self, standstill: Standstill) -> None:
        self._registers = [(tid, raw_registers(tid)) for tid in standstill.threads(self.live.pid)]

    @property
    def is_settled(self) -> bool:
        """Whether no thread stands between two ranks."""
        pcs = [raw_pc_and_stack_pointer(raw)[0] for _, raw in self._registers if raw is not None]
        return not any(start <= pc < end for pc in pcs for start, end in self._unsettled)

    def copy(self) -> None:
        self._maps_then = self.live.maps() if self.plan.with_maps else None
        self._follow_ranks()
        self._follow_threads()
        total = sum(self._vectors[1::2])
        if total > len(self._room):
            self._room = _room(min(total, LARGEST_COPY))
        self._lost = self.live.copy_into(self._room, self._vectors)

    def _follow_ranks(self) -> None:
        """Take each stack from where it begins now."""
        words = self._pointers.read()
        if words != self._words:
            for at, (before, now) in enumerate(zip(self._words, words)):
                if before != now:
                    self._begin(at, self._begin_of(at, now))
            self._words = words

    def _follow_threads(self) -> None:
        """Take the stacks on which threads are from their stack pointers, if these are lower."""
        for _, raw in self._registers:
            pointer = raw_pc_and_stack_pointer(raw)[1] if raw is not None else 0
            at = bisect_right(self._starts, pointer) - 1
            if at >= 0 and pointer < self._ends[at]:
                planned = self._vectors[self._first_stack + 2 * at]
                self._begin(at, min(planned, max(self._starts[at], pointer - BELOW) & -8))
            elif self._other_stacks and pointer:
                self._take_other_stack(pointer)

    def _take_other_stack(self, pointer: int) -> None:
        """Take what a thread has last put on a stack that no plan knows."""
        mapping = mapping_at(self._maps, pointer)
        if mapping is not None and mapping.writable:
            begin = max(mapping.start, pointer - BELOW) & -8
            self._vectors.extend((begin, min(mapping.end, pointer + NEAR) - begin))

    def _begin_of(self, at: int, pointer: int) -> int:
        """Where the part in use of a stack begins, by the word that leads into it."""
        start = self._starts[at]
        return (max(start, pointer - BELOW) if start <= pointer < self._ends[at] else self._expected[at]) & -8

    def _begin(self, at: int, begin: int) -> None:
        vector = self._first_stack + 2 * at
        self._vectors[vector : vector + 2] = array.array("Q", (begin, self._ends[at] - begin))

    def target(self, stopped: Pause) -> PausedTarget:
        threads = [KernelThread(tid, by_dwarf_number(raw)) for tid, raw in self._registers]
        untouched = tuple(self._still_untouched())
        return PausedTarget(self.live, _Pieces(self._pieces()), threads, stopped, untouched, self._maps_then)

    def _still_untouched(self) -> Iterator[Range]:
        """What has no memory even now, after the pause: it was zeros in it."""
        for start, end in self._untouched:
            yield from without(start, end, [*self.live.populated(start, end)])

    def _pieces(self) -> Iterator[tuple[int, memoryview]]:
        at, lost = 0, set(self._lost)
        for index, (address, size) in enumerate(zip(self._vectors[::2], self._vectors[1::2])):
            if index not in lost:
                yield address, self._room[at : at + size]
            at += size


def _vectors(ranges: Iterable[Range]) -> array.array[int]:
    """Addresses and sizes in turns, as struct iovec has them."""
    return array.array("Q", [number for start, end in ranges for number in (start, end - start)])


def _room(size: int) -> memoryview:
    """Memory whose pages are there already: the kernel makes none while the process stands still."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0x8000)
    return memoryview(mmap.mmap(-1, max(size, 1), flags=flags))


# ---- a rehearsal ----


class RecordedTarget(_OfProcess):
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
        found = self.live.read_many(places)
        for place, data in zip(places, found):
            if data is not None:
                self._note(*place)
        return found

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

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        return self.live.file_identity(path)

    def check_is_alive(self) -> None:
        """Raise `TargetEndedError` if the process has ended."""
        self.live.check_is_alive()

    def check_program(self) -> None:
        """Raise `TargetError` if the process runs another program now."""
        self.live.check_program()

    def noted(self, with_maps: bool) -> tuple[Range, ...]:
        """What was read of memory that may change, or, of a process whose maps change, may leave it."""
        changing = [one for one in self._maps if one.writable or (with_maps and not one.path)]
        return intersected(merged(self._read), [(mapping.start, mapping.end) for mapping in changing])


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ascending, without overlaps; what touches is one."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif start < end:
            found.append((start, end))
    return tuple(found)


def without(start: int, end: int, others: Sequence[Range]) -> tuple[Range, ...]:
    """The parts of [start, end) that lie in none of other ascending ranges."""
    found, at = [], start
    for low, high in islice(others, max(bisect_right(others, (start, 1 << 64)) - 1, 0), None):
        if low >= end:
            break
        if at < low:
            found.append((at, low))
        at = max(at, high)
    return (*found, (at, end)) if at < end else tuple(found)


def intersected(ranges: Sequence[Range], allowed: Sequence[Range]) -> tuple[Range, ...]:
    """The parts of ascending ranges that lie in other ascending ones."""
    found, at = [], 0
    for start, end in ranges:
        while at < len(allowed) and allowed[at][1] <= start:
            at += 1
        for low, high in allowed[at:]:
            if low >= end:
                break
            found.append((max(start, low), min(end, high)))
    return tuple(found)
