"""Which ranks run at this moment, by the stack pointers of a stopped target's kernel threads.

Takes a rank table and threads. A switch is a few instructions long, and a target may be stopped in the middle of one:
the stack that a thread is on then tells more than the state that the runtime had last written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pieglobalsfind.decoders.lazy_ranks import columns_of, with_changes
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import BLOCKED, OWN_THREAD, READY, REGISTRY, RUNNING, SCAN, Absent, Rank, RankTable
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import KernelThread


def with_running(table: RankTable, threads: Sequence[KernelThread]) -> RankTable:
    """The table with every rank that a thread is on as running on that thread, and without its stale context."""
    extents = columns_of(table.ranks).stacks
    stacks = sorted((start, end, index) for index, (start, end) in enumerate(extents))
    changes = {}
    for thread in threads:
        stack = range_at(stacks, stack_pointer(thread, table.processor))
        if stack is not None:
            changes[stack[2]] = _running(table.ranks[stack[2]], thread.tid)
    return replace(table, ranks=with_changes(table.ranks, changes))


def is_between_ranks(table: RankTable) -> bool:
    """Whether a thread of a stopped target has left a rank, and holds in registers alone what it goes on with.

    The embedded runtime has cleared the next rank's context by then: that rank waits without one, or runs on a thread
    that is still on the other's stack. A moment later it is on its own. Where only copies tell of ranks, the next rank
    is the one whose context can't be found.
    """
    running = set[int]()
    for rank in table.ranks:
        if not isinstance(rank.context, Absent):
            continue
        if rank.evidence.tier == SCAN and table.context_layout and not rank.kernel_thread:
            return True
        if rank.evidence.tier != REGISTRY:
            continue
        if rank.state in (READY, BLOCKED) and rank.context != OWN_THREAD:
            return True
        if rank.state == RUNNING and rank.kernel_thread:
            if rank.kernel_thread in running:
                return True
            running.add(rank.kernel_thread)
    return False


def stack_pointer(thread: KernelThread, processor: Processor) -> int:
    """The thread's stack pointer, -1 if it is unknown."""
    if isinstance(thread.registers, Absent):
        return -1
    return thread.registers.get(processor.stack_pointer, -1)


def _running(rank: Rank, thread: int) -> Rank:
    absent = Absent("it is running", "its registers are its kernel thread's")
    return replace(rank, state=RUNNING, kernel_thread=thread, context=absent)
