"""Stops processes for milliseconds and copies what a plan lists of each, in a few calls of process_vm_readv.

Takes live targets and plans; gives targets that answer from the copies (paused.py). It knows nothing of ranks.
"""

from __future__ import annotations

import array
import gc
import mmap
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Optional

from pieglobalsfind.errors import NotStoppableError
from pieglobalsfind.memory_map import ProcMaps, mapping_at
from pieglobalsfind.ranges import Range, merged, without
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import Pause, PausedTarget, Pieces
from pieglobalsfind.targets.ptrace import Standstill, by_dwarf_number, highest, raw_pc_and_stack_pointer, raw_registers
from pieglobalsfind.targets.scattered_words import WORD, ScatteredWords

BELOW = 512  # bytes below a stack pointer that are in use: the red zone, and what a switch saves
LARGEST_COPY = 1 << 30  # bytes
SMALL_GROWTH, LARGEST_GROWTH = 1 << 16, 1 << 20  # bytes by which stacks may have grown when the process stands still
NEAR = 1 << 18  # bytes from a stack pointer on that are copied of a stack that no plan knows
MOST_SETTLING = 100  # times that a process is let go at once because a thread stood between two ranks
MOST_LISTED = 1 << 20  # pointers in all lists together
MOST_APART = 1 << 14  # objects of all lists that are copied one by one: each takes the kernel a part of a microsecond
NEAR_OBJECTS = 1 << 13  # bytes from a list's first object to its last that are copied in one piece
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
class ListPlan:
    """A list of pointers of which the objects are copied that it has when the process stands still, `size` bytes each.

    At `place` is the word that leads to the list, and after it the word that leads to the list's end.
    """

    place: int
    size: int


@dataclass(frozen=True)
class Plan:
    """What is copied of a process; `unsettled` is code in which a thread has left one rank and not yet saved it.

    `untouched`, ascending, are zeros that the process has no memory for: nothing to copy, unless it writes there before
    it stands still. `other_stacks`: what threads have put last on stacks that are not in `stacks` is copied, too.
    `with_maps`: so is the memory map, which may change soon.
    """

    ranges: tuple[Range, ...] = ()
    stacks: tuple[StackPlan, ...] = ()
    lists: tuple[ListPlan, ...] = ()
    unsettled: tuple[Range, ...] = ()
    untouched: tuple[Range, ...] = ()
    other_stacks: bool = False
    with_maps: bool = False

    def enlarged(self, ranges: Iterable[Range]) -> Plan:
        """Return a plan with more ranges."""
        return replace(self, ranges=merged((*self.ranges, *ranges)))


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
        stacks = sorted(plan.stacks, key=lambda stack: stack.start)
        self._starts = [stack.start for stack in stacks]
        self._ends = [stack.end for stack in stacks]
        self._expected = [max(stack.start, stack.end - stack.expected) for stack in stacks]
        self._pointers = ScatteredWords(live, [stack.pointer for stack in stacks])
        self._words = self._pointers.read()
        begins = [self._begin_of(at, pointer) for at, pointer in enumerate(self._words)]
        self._vectors = _vectors((*plan.ranges, *zip(begins, self._ends)))
        self._first_stack = 2 * len(plan.ranges)
        self._list_words = ScatteredWords(live, [each.place + at for each in plan.lists for at in (0, 8)])
        self.size = sum(self._vectors[1::2])
        listed = sum(self._listed()[1::2])
        self._room = room.of(min(self.size, LARGEST_COPY) + min(self.size // 4 + SMALL_GROWTH, LARGEST_GROWTH) + listed)
        self._copied = self._vectors
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
        others = self._follow_threads()
        self._copied = self._vectors + others + self._listed()
        total = sum(self._copied[1::2])
        if total > len(self._room):
            self._room = _room(min(total, LARGEST_COPY))
        self._lost = self.live.copy_into(self._room, self._copied)

    def _follow_ranks(self) -> None:
        """Take each stack from where it begins now."""
        words = self._pointers.read()
        if words != self._words:
            for at, (before, now) in enumerate(zip(self._words, words)):
                if before != now:
                    self._begin(at, self._begin_of(at, now))
            self._words = words

    def _follow_threads(self) -> array.array[int]:
        """Take the stacks on which threads are from their stack pointers, if these are lower; return other stacks."""
        others = []
        for _, raw in self._registers:
            pointer = raw_pc_and_stack_pointer(raw)[1] if raw is not None else 0
            at = bisect_right(self._starts, pointer) - 1
            if at >= 0 and pointer < self._ends[at]:
                planned = self._vectors[self._first_stack + 2 * at]
                self._begin(at, min(planned, max(self._starts[at], pointer - BELOW) & -8))
            elif self._other_stacks and pointer:
                others += self._other_stack(pointer)
        return _vectors(others)

    def _other_stack(self, pointer: int) -> list[Range]:
        """What a thread has last put on a stack that no plan knows."""
        mapping = mapping_at(self._maps, pointer)
        if mapping is None or not mapping.writable:
            return []
        return [(max(mapping.start, pointer - BELOW) & -8, min(mapping.end, pointer + NEAR))]

    def _listed(self) -> array.array[int]:
        """The lists as they are now, and the objects that they have."""
        words = iter(self._list_words.read())
        lists, left = [], MOST_LISTED
        for planned, begin, end in zip(self.plan.lists, words, words):
            if 0 < end - begin <= WORD * left and (begin | end) % WORD == 0:
                left -= (end - begin) // WORD
                lists.append((begin, end, planned.size))
        contents = self.live.read_many([(begin, end - begin) for begin, end, _ in lists]) if lists else []
        ranges, left = [], MOST_APART
        for (begin, end, size), content in zip(lists, contents):
            pointers = {*array.array("Q", content or b"")} - {0}
            first, last = (min(pointers), max(pointers)) if pointers else (0, 0)
            ranges.append((begin, end))
            if last - first <= NEAR_OBJECTS:
                ranges += [(first, last + size)] if pointers else []
            elif len(pointers) <= left:
                left -= len(pointers)
                ranges += [(pointer, pointer + size) for pointer in pointers]
        return _vectors(ranges)

    def _begin_of(self, at: int, pointer: int) -> int:
        """Where the part in use of a stack begins, by the word that leads into it."""
        start = self._starts[at]
        return (max(start, pointer - BELOW) if start <= pointer < self._ends[at] else self._expected[at]) & -8

    def _begin(self, at: int, begin: int) -> None:
        vector = self._first_stack + 2 * at
        self._vectors[vector] = begin
        self._vectors[vector + 1] = self._ends[at] - begin

    def target(self, stopped: Pause) -> PausedTarget:
        threads = [KernelThread(tid, by_dwarf_number(raw)) for tid, raw in self._registers]
        untouched = tuple(self._still_untouched())
        return PausedTarget(self.live, Pieces(self._pieces()), threads, stopped, untouched, self._maps_then)

    def _still_untouched(self) -> Iterator[Range]:
        """What has no memory even now, after the pause: it was zeros in it."""
        for start, end in self._untouched:
            yield from without(start, end, [*self.live.populated(start, end)])

    def _pieces(self) -> Iterator[tuple[int, memoryview]]:
        at, lost = 0, set(self._lost)
        for index, (address, size) in enumerate(zip(self._copied[::2], self._copied[1::2])):
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
