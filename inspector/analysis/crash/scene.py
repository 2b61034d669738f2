"""The scene of a crash: the thread that got the signal, its frames, and its rank; diagnoses are made from it.

Takes a `Job` and a signal; walks that thread's stack, past handlers that were called for a signal before it.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import RUNNING, Absent, Owner, Rank, Region
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.signal_frame import FATAL as FATAL
from pieglobalsfind.stacks.signal_frame import FAULTS, SI_KERNEL, fatal_signal, is_signal_return, mask_before
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.core_notes import FatalSignal
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.procfs import blocked_signals

from ...job.job import Job
from ...job.stacks import label


@dataclass(frozen=True)
class Scene:
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


@dataclass(frozen=True)
class ThreadStack:
    """The frames of a kernel thread, innermost first, as far as they are known.

    `cause` is the first of the signals that end programs whose handler is on the stack, `depth` the frame that it
    interrupted; None and 0 without one. `handler` is the function that was called for it. `memory` is the stack's, None
    where there are no frames.
    """

    frames: tuple[Activation, ...] = ()
    memory: Optional[Memory] = None
    cause: Optional[FatalSignal] = None
    depth: int = 0
    handler: str = ""


class ThreadStacks:
    """The stacks of a job's kernel threads, with the ranks that they run."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def thread(self, tid: int) -> Optional[KernelThread]:
        """The thread of that id, None if there is none."""
        return next((thread for thread in self.job.threads if thread.tid == tid), None)

    def rank_of(self, tid: int) -> Optional[Rank]:
        """The rank that the thread runs: by its stack, or else by what the runtime keeps."""
        table, thread = self.job.table, self.thread(tid)
        number = table.processor.stack_pointer
        if thread is not None and not isinstance(thread.registers, Absent) and number in thread.registers:
            owner = self.job.translator.owner(thread.registers[number])
            on_stack = next((rank for rank in table.ranks if rank.rank == owner.rank), None)
            if on_stack is not None:
                return on_stack
        running = [rank for rank in table.ranks if rank.state == RUNNING and rank.kernel_thread == tid]
        return running[0] if len(running) == 1 else None

    def stack(self, tid: int) -> ThreadStack:
        """A stack that has overflowed has at least the innermost frame."""
        thread, rank = self.thread(tid), self.rank_of(tid)
        if thread is None or isinstance(thread.registers, Absent):
            return ThreadStack()
        region: Union[Region, Absent] = rank.stack if rank is not None else Absent("no rank's")
        try:
            frames, memory, _ = self.job.walker.frames_from(region, thread.registers)
        except (RanklensError, KeyError):
            return ThreadStack()
        return self._with_cause(tuple(frames), memory, tid)

    def _with_cause(self, frames: tuple[Activation, ...], memory: Memory, tid: int) -> ThreadStack:
        processor = self.job.table.processor
        stack, blocked = ThreadStack(frames, memory), self.blocked(tid)
        for at in range(1, len(frames) - 1):
            if not is_signal_return(processor, memory, frames[at].pc):
                continue
            pointer = frames[at].stack_pointer
            try:
                fatal = fatal_signal(processor, memory, pointer, blocked)
                blocked = mask_before(processor, memory, pointer)
            except MemoryUnreadable:
                break
            if fatal is not None:
                signal = FatalSignal(tid, fatal.number, fatal.code, fatal.address)
                stack = ThreadStack(frames, memory, signal, at + 1, label(self.calls(frames[at - 1])[-1]))
        return stack

    def blocked(self, tid: int) -> int:
        """The signals that the thread blocks, a bit each; 0 if that is not known."""
        target = self.job.target
        if isinstance(target, CoreTarget):
            return target.signal.blocked if target.signal is not None and target.signal.tid == tid else 0
        if isinstance(target, (LiveTarget, PausedTarget)):
            return blocked_signals(target.pid, tid)
        return 0

    def calls(self, frame: Activation) -> tuple[Call, ...]:
        """The calls at a frame, inlined ones first."""
        return self.job.walker.calls(frame.lookup)

    def calls_at(self, frames: Sequence[Activation]) -> tuple[tuple[Call, ...], ...]:
        """The calls at each frame."""
        return tuple(map(self.calls, frames))


def scene_of_signal(stacks: ThreadStacks, signal: FatalSignal, message_of: Callable[[ThreadStack], str]) -> Scene:
    """The scene of the signal that ended a process, or of the one in whose handler it was ended."""
    stack, rank = stacks.stack(signal.tid), stacks.rank_of(signal.tid)
    message = message_of(stack)
    if stack.cause is None:
        return Scene(stacks.job, signal, rank, stack.frames, stacks.calls_at(stack.frames), message)
    frames = stack.frames[stack.depth :]
    is_same = stack.cause.number == signal.number
    later = "" if is_same else f"its handler, {stack.handler}, ended it by {signals.Signals(signal.number).name}"
    return Scene(stacks.job, stack.cause, rank, frames, stacks.calls_at(frames), message, stack.handler, later)
