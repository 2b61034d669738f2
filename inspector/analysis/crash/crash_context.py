"""The context of a crash: the signal, the frames that it interrupted, and the rank; diagnoses are made from it.

Takes the stacks of a job's threads and a signal.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.model import Owner, Rank
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.signal_frame import FATAL as FATAL
from pieglobalsfind.stacks.signal_frame import FAULTS, SI_KERNEL
from pieglobalsfind.stacks.unwind import Activation
from pieglobalsfind.targets.core_notes import FatalSignal

from ...job.job import Job
from .thread_stacks import ThreadStack, ThreadStacks


@dataclass(frozen=True)
class CrashContext:
    """What a diagnosis is made from: `frames` innermost first, and the calls at each, inlined ones first.

    The innermost frame is the one that the signal interrupted. `handler` is the function that handled it, `later`
    what followed, "" where the process ended by it.
    """

    job: Job
    signal: FatalSignal
    rank: Optional[Rank]
    frames: tuple[Activation, ...]
    calls_at: tuple[tuple[Call, ...], ...]
    message: str
    handler: str = ""
    later: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, innermost first."""
        return tuple(call for calls in self.calls_at for call in calls)

    @property
    def address(self) -> Optional[int]:
        """Return the faulting address, None if the signal has none."""
        is_known = self.signal.number in FAULTS and 0 < self.signal.code != SI_KERNEL
        return self.signal.address if is_known else None

    @property
    def owner(self) -> Optional[Owner]:
        """Whose the faulting address is, None without one."""
        return None if self.address is None else self.job.translator.owner(self.address)


def context_of_signal(
    stacks: ThreadStacks, signal: FatalSignal, message_of: Callable[[ThreadStack], str]
) -> CrashContext:
    """The context of the signal that ended a process, or of the one in whose handler it was ended."""
    stack, rank = stacks.stack(signal.tid), stacks.rank_of(signal.tid)
    message = message_of(stack)
    if stack.cause is None:
        return CrashContext(stacks.job, signal, rank, stack.frames, stacks.calls_at(stack.frames), message)
    frames = stack.frames[stack.depth :]
    is_same = stack.cause.number == signal.number
    later = "" if is_same else f"its handler, {stack.handler}, ended it by {signals.Signals(signal.number).name}"
    return CrashContext(stacks.job, stack.cause, rank, frames, stacks.calls_at(frames), message, stack.handler, later)
