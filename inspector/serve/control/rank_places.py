"""Where a job's ranks are while a debugger controls them: which process has each, and which one a thread runs.

Takes a moment of the job, and keeps what stays true while it runs on: stacks don't move, and the runtime reports ranks
that move. A thread runs the rank in whose stack its stack pointer is, whatever the runtime's records say.
"""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.decoders.lazy_ranks import NOWHERE, columns_of
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranges import range_at
from pieglobalsfind.targets.ptrace import raw_pc_and_stack_pointer, raw_registers

from ..ranks.served_job import Moment


class RankPlaces:
    """`process_of` is the pid by rank, `event_functions` where a runtime tells of its ranks, by pid; 0: nowhere."""

    def __init__(self) -> None:
        self.process_of: dict[int, int] = {}
        self.event_functions: dict[int, int] = {}
        self._stacks: dict[int, list[tuple[int, int, int]]] = {}  # by pid: start, end, rank; ascending

    def learn(self, moment: Moment) -> None:
        """Take what a moment says; raises `UsageError` where ranks can't be controlled."""
        self.process_of = {}
        self._stacks = {}
        job = moment.job
        for viewed in job.processes:
            table = viewed.moment.table
            columns = columns_of(table.ranks)
            if columns.address_spaces:
                raise UsageError(
                    f"ranks of the method {table.method} are processes, and can't be controlled",
                    "leave --control out; the debugger itself can attach to each",
                )
            stacks = ((*extent, number) for extent, number in zip(columns.stacks, columns.numbers) if extent != NOWHERE)
            self._stacks[viewed.pid] = sorted(stacks)
            self.event_functions[viewed.pid] = table.event_function
            for number in columns.numbers:
                if not job.spans_processes or job.process(number) is viewed:
                    self.process_of[number] = viewed.pid

    def runner(self, pid: int, tid: int) -> Optional[int]:
        """The rank that a stopped thread runs, None if it runs none."""
        raw = raw_registers(tid)
        pointer = raw_pc_and_stack_pointer(raw)[1] if raw is not None else 0
        stack = range_at(self._stacks.get(pid, ()), pointer)
        return stack[2] if stack is not None else None
