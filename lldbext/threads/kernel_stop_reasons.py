"""Asks LLDB why each kernel thread stopped, before a rank's thread takes its place in LLDB's list.

Takes an `SBProcess`. LLDB asks the server only when it wants to know why a thread stopped that was not the first to,
and writes the answer to the thread that stands for it; that one then takes the reason of the thread below, none, for
its own (`ProcessGDBRemote::SetThreadStopInfo`, `ThreadMemory::CalculateStopInfo`). Of ranks that hit a breakpoint at
once LLDB would count one's hit, and let the others go on. So the threads below are asked while LLDB makes its list,
when nothing stands for them yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import lldb

from lldbext.threads.thread_breakpoints import ThreadBreakpoints
from lldbext.threads.thread_ids import rank_of_tid


@dataclass(frozen=True)
class Standing:
    """A rank that runs on a kernel thread, and where; `pc` 0: not known."""

    rank: int
    pc: int


class KernelThreads:
    """Those that LLDB has shown can be asked: once a rank's thread stands for one, LLDB gives it to no one."""

    def __init__(self, process: Any, thread_breakpoints: ThreadBreakpoints) -> None:
        self._process = process
        self._met: dict[int, Any] = {}
        self._bare: set[int] = set()  # those that no rank's thread may stand for yet
        self._thread_breakpoints = thread_breakpoints

    def are_met(self) -> bool:
        """Whether LLDB shows none that is not known."""
        return all(tid in self._met for tid, _ in self._shown())

    def meet(self, busy: Collection[int] = ()) -> None:
        """Keep those in LLDB's list, but for those of `busy` that have stopped by themselves.

        LLDB may have to step such a one off its breakpoint, and ends the step in the same thread alone.
        """
        for tid, thread in self._shown():
            if tid not in busy or thread.GetStopReason() == lldb.eStopReasonNone:
                self._met[tid] = thread
                self._bare.discard(tid)

    def _shown(self) -> list[tuple[int, Any]]:
        numbered = [(int(thread.GetThreadID()), thread) for thread in self._process]
        return [(tid, thread) for tid, thread in numbered if rank_of_tid(tid) is None]

    def may_be_covered(self, stood_for: Mapping[int, Standing]) -> frozenset[int]:
        """Which of some threads ranks' threads may stand for; LLDB knows then why they stopped.

        Not one at a breakpoint that can't be asked: LLDB shows it as it is, until it is met.
        """
        for tid, standing in stood_for.items():
            if tid in self._met:
                with self._thread_breakpoints.lent(standing.rank, standing.pc, tid):
                    self._met[tid].GetStopReason()
            elif stops_any_thread(self._process.GetTarget(), standing.pc):
                self._bare.add(tid)
        return frozenset(stood_for) - self._bare


def stops_any_thread(target: Any, address: int) -> bool:
    """Whether there is a breakpoint for all threads, of the user's or ours.

    One for a single thread, as LLDB's own are at the end of a step, means a rank's: the thread below would deny it.
    """
    return any(
        lldb_breakpoint.GetThreadID() == lldb.LLDB_INVALID_THREAD_ID
        and lldb_breakpoint.FindLocationByAddress(address).IsValid()
        for lldb_breakpoint in target.breakpoint_iter()
    )
