"""Where ranks were over a time: the samples of one recording, with equal ones that follow one another as one stretch.

Takes samples in the order of time; gives each rank's stretches, and how long it was in each stack. A sample holds until
the next one is taken. Memory is bounded: where there are too many stretches, the line of time gets coarser, while the
sums stay exact.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pieglobalsfind.stacks.call_tree import Call

Calls = tuple[Call, ...]

MOST_CHANGES = 1_000_000  # stretches that are kept, of all ranks together; 12 bytes each
MOST_STACKS = 50_000  # different ones
ELSEWHERE = -1  # in place of a stack: the rank has not come yet, has exited, or is in another process
OTHERS = (Call("(one of too many different stacks)"),)


class Stretch(NamedTuple):
    """From `start` to `end`, seconds since the first sample, a rank was in the stack of that number."""

    start: float
    end: float
    stack: int


class Recording:
    """`stacks` are the different ones, outermost call first; `seconds` is how long by rank and stack.

    `unknown` are the numbers of those that say only why there is none. `by_line`: calls of one function at different
    lines are different. `grain` is the shortest time between two changes that are kept, 0 where all are.
    """

    def __init__(self, by_line: bool = False) -> None:
        self.stacks: list[Calls] = []
        self.unknown: set[int] = set()
        self.seconds: dict[int, dict[int, float]] = {}
        self.samples = 0
        self.grain = 0.0
        self.end = 0.0
        self._by_line = by_line
        self._numbers: dict[Calls, int] = {}
        self._seen: dict[Calls, int] = {}  # as they came
        self._last: dict[int, int] = {}
        self._starts: dict[int, array[float]] = {}
        self._held: dict[int, array[int]] = {}
        self._changes = 0
        self._next = 0.0

    def add(self, at: float, calls: Mapping[int, Calls], missing: Mapping[int, str]) -> None:
        """A sample, `at` seconds after the first one; `missing` says why a rank has no stack."""
        self.finish(at)
        now = {rank: self._number(stack) for rank, stack in calls.items()}
        for rank, reason in missing.items():
            now[rank] = self._number((Call(f"(no stack: {reason})"),))
            self.unknown.add(now[rank])
        for rank in self._last.keys() - now.keys():
            now[rank] = ELSEWHERE
        self._last = now
        self.samples += 1
        if at >= self._next:
            self._next = (math.floor(at / self.grain) + 1) * self.grain if self.grain else 0.0
            self._keep(at, now)

    def finish(self, at: float) -> None:
        """What the last sample has shown was so until then."""
        passed = max(at - self.end, 0.0)
        self.end = max(at, self.end)
        for rank, stack in self._last.items():
            if stack != ELSEWHERE:
                held = self.seconds.setdefault(rank, {})
                held[stack] = held.get(stack, 0.0) + passed

    @property
    def ranks(self) -> list[int]:
        """Return the recorded ranks."""
        return sorted(self._starts)

    def stretches(self, rank: int) -> Iterator[Stretch]:
        """What the rank was in, in the order of time; times that it was elsewhere are left out."""
        starts, held = self._starts[rank], self._held[rank]
        for number, (start, stack) in enumerate(zip(starts, held)):
            end = starts[number + 1] if number + 1 < len(starts) else self.end
            if stack != ELSEWHERE:
                yield Stretch(start, end, stack)

    def _number(self, calls: Calls) -> int:
        number = self._seen.get(calls)
        if number is None:
            shown = calls if self._by_line else tuple(Call(call.function, call.file, 0, call.library) for call in calls)
            if shown not in self._numbers and len(self.stacks) >= MOST_STACKS:
                shown = OTHERS
            number = self._numbers.get(shown, len(self.stacks))
            if number == len(self.stacks):
                self._numbers[shown] = number
                self.stacks.append(shown)
            if shown is OTHERS:
                self.unknown.add(number)
            if len(self._seen) >= MOST_STACKS:
                self._seen.clear()
            self._seen[calls] = number
        return number

    def _keep(self, at: float, now: Mapping[int, int]) -> None:
        for rank, stack in now.items():
            held = self._held.get(rank)
            if held is None:
                if stack != ELSEWHERE:
                    self._starts[rank], self._held[rank] = array("d", [at]), array("i", [stack])
                    self._changes += 1
            elif held[-1] != stack:
                self._starts[rank].append(at)
                held.append(stack)
                self._changes += 1
        if self._changes > MOST_CHANGES:
            self._coarsen()

    def _coarsen(self) -> None:
        """Keep fewer changes, until half of what may be kept is free."""
        while self._changes > MOST_CHANGES // 2:
            self.grain = 2 * self.grain or max(self.end / max(self.samples, 1), 1e-6)
            for rank in self._starts:
                self._starts[rank], self._held[rank] = self._thinned(rank)
            self._changes = sum(map(len, self._starts.values()))
            if self._changes <= 2 * len(self._starts):
                return

    def _thinned(self, rank: int) -> tuple[array[float], array[int]]:
        """One change of each grain of time at most: what is kept was so when it begins."""
        starts, held = array("d"), array("i")
        for start, stack in zip(self._starts[rank], self._held[rank]):
            is_new = not held or math.floor(start / self.grain) > math.floor(starts[-1] / self.grain)
            if is_new and (not held or held[-1] != stack):
                starts.append(start)
                held.append(stack)
        return starts, held
