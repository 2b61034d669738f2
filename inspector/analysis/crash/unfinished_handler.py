"""Find a crash in a process that has not ended: a signal handler that has not returned, or a thread in abort().

Takes the stacks of a job's kernel threads; gives the context of the first such thread. A signal that a debugger holds
back is known to that debugger alone; its thread stands in abort(), or nothing shows it.
"""

from __future__ import annotations

import signal as signals
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import RUNNING, Absent, Region
from pieglobalsfind.target import read_or_none
from pieglobalsfind.targets.core_notes import FatalSignal
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.procfs import blocked_signals
from pieglobalsfind.targets.ptrace import tracer_of

from ...job.job import Job
from .crash_context import FATAL, CrashContext
from .thread_stacks import ThreadStack, ThreadStacks

ABORT = "abort"
MOST_SCANNED = 1 << 20  # bytes of a stack in which a handler is looked for
MOST_IN_ABORT = 6  # frames: what abort() calls to send the signal


def scene_of_handler(stacks: ThreadStacks, message_of: Callable[[ThreadStack], str]) -> Optional[CrashContext]:
    """None if no thread stands in a handler of a signal that ends programs, or in abort() under a debugger."""
    job = stacks.job
    held = holder(job)
    for tid in threads_to_look_at(job, bool(held)):
        stack = stacks.stack(tid)
        rank = stacks.rank_of(tid)
        if stack.cause is not None:
            frames = stack.frames[stack.depth :]
            message = message_of(stack) if stack.cause.number == signals.SIGABRT else ""
            later = f"it is still in the handler, {stack.handler}"
            return CrashContext(job, stack.cause, rank, frames, stacks.calls_at(frames), message, stack.handler, later)
        if held and is_in_abort(stacks, stack):
            signal = FatalSignal(tid, signals.SIGABRT)
            calls = stacks.calls_at(stack.frames)
            return CrashContext(
                job, signal, rank, stack.frames, calls, message_of(stack), later=f"{held} holds the process"
            )
    return None


def threads_to_look_at(job: Job, is_held: bool) -> Iterator[int]:
    """Those on the stacks of ranks, whose memory is at hand, and others that may be in a handler."""
    number, pid = job.table.processor.stack_pointer, process_id(job)
    stacks = [rank.stack for rank in job.table.ranks if rank.state == RUNNING and isinstance(rank.stack, Region)]
    for thread in job.threads if stacks or pid else ():
        pointer = 0 if isinstance(thread.registers, Absent) else thread.registers.get(number, 0)
        if (
            is_held
            or (pid and blocks_fatal_signal(pid, thread.tid))
            or any(pointer in stack and may_hold_handler(job, pointer, stack.end) for stack in stacks)
        ):
            yield thread.tid


def may_hold_handler(job: Job, pointer: int, end: int) -> bool:
    """Whether a handler may be on the stack between two addresses: a word there is where one returns to.

    Nothing has to be known of any file for that, while a walk opens the debug information of all files that it meets.
    """
    target, frame = job.target, job.table.processor.signal_frame
    if frame is None:
        return False
    maps = target.maps()
    for word in set(array("Q", read_or_none(target, pointer, min(end - pointer, MOST_SCANNED) & -8) or b"")):
        mapping = mapping_at(maps, word)
        if mapping is not None and mapping.executable and read_or_none(target, word, len(frame.code)) == frame.code:
            return True
    return False


def blocks_fatal_signal(pid: int, tid: int) -> bool:
    """Whether a thread may be in such a signal's handler, where the signal is blocked (sigaction(2))."""
    blocked = blocked_signals(pid, tid)
    return any(blocked >> (number - 1) & 1 for number in FATAL)


def is_in_abort(stacks: ThreadStacks, stack: ThreadStack) -> bool:
    """Whether the thread's innermost frames are abort() and what that calls."""
    calls = [call for calls in stacks.calls_at(stack.frames[:MOST_IN_ABORT]) for call in calls]
    return any(call.function == ABORT and "/libc.so" in call.library for call in calls)


def process_id(job: Job) -> int:
    """The process that a job is read from, 0 for files."""
    target = job.target
    return target.pid if isinstance(target, (LiveTarget, PausedTarget)) else 0


def holder(job: Job) -> str:
    """`gdb (process 4711)`: the debugger that traces the process, "" if none does."""
    is_running = isinstance(job.target, LiveTarget) and job.target.is_live
    tracer = tracer_of(process_id(job)) if is_running else 0
    if not tracer:
        return ""
    try:
        name = Path(f"/proc/{tracer}/comm").read_text(errors="replace").strip()
    except OSError:
        name = "a debugger"
    return f"{name} (process {tracer})"


def holders(job: Job) -> tuple[str, ...]:
    """The same as a report has it: `gdb (process 4711)`, or nothing."""
    return tuple(filter(None, (holder(job),)))
