"""Lends breakpoints that are for a rank's thread to the kernel thread below it while LLDB asks why that stopped.

Takes an `SBTarget`. What is for a rank's thread is denied to the kernel thread below it, which LLDB asks why it stopped
(`BreakpointSite::ValidForThisThread`); so it is lent to that one for the time of the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lldbext.threads.thread_ids import rank_of_tid

FIRST_LOOK = 4096  # numbers of LLDB's own breakpoints to try at first: it may have made many before there were ranks
FURTHER = 64  # and beyond the last one found: LLDB numbers them in turn, -1 first, and makes a few at each step


class ThreadBreakpoints:
    """LLDB does not list its own breakpoints, but finds them by number."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._own: dict[int, Any] = {}
        self._tried = 0

    @contextmanager
    def lent(self, rank: int, pc: int, tid: int) -> Iterator[None]:
        """Let those for a rank's thread that stand at `pc` be for a kernel thread."""
        breakpoints = (*self._of(rank), *self._target.breakpoint_iter())
        matching = [each for each in breakpoints if is_for(each, rank) and each.FindLocationByAddress(pc).IsValid()]
        owners = [each.GetThreadID() for each in matching]
        for lldb_breakpoint in matching:
            lldb_breakpoint.SetThreadID(tid)
        try:
            yield
        finally:
            for lldb_breakpoint, owner in zip(matching, owners):
                lldb_breakpoint.SetThreadID(owner)

    def are_for(self, rank: int) -> bool:
        """Whether a step waits for a rank to come somewhere: by breakpoints of LLDB's own, for the rank's thread."""
        return bool(self._of(rank))

    def _of(self, rank: int) -> list[Any]:
        self._renew()
        return [lldb_breakpoint for lldb_breakpoint in self._own.values() if is_for(lldb_breakpoint, rank)]

    def _renew(self) -> None:
        find = self._target.FindBreakpointByID
        self._own = {
            number: lldb_breakpoint
            for number, lldb_breakpoint in self._own.items()
            if lldb_breakpoint.IsValid() and find(-number).IsValid()
        }
        last, number = self._tried + (FURTHER if self._tried else FIRST_LOOK), self._tried
        while number < last:
            number += 1
            candidate = find(-number)
            if candidate.IsValid():
                self._own[number] = candidate
                self._tried, last = number, max(last, number + FURTHER)


def is_for(breakpoint: Any, rank: int) -> bool:
    """Whether a breakpoint is for a rank's thread alone."""
    return rank_of_tid(int(breakpoint.GetThreadID())) == rank
