"""The stacks of kernel threads in a job that has crashed, and the handlers of fatal signals on them.

Takes a `Job`; gives each thread's frames, also past handlers, and the rank that it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import RUNNING, Absent, Rank, Region
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.signal_frame import fatal_signal, is_signal_return, mask_before
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.core_notes import FatalSignal
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.procfs import blocked_signals

from ...job.job import Job
from ...job.read_stacks import label


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
