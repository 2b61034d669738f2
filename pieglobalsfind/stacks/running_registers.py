"""Registers of ranks that run: those of their kernel threads.

Takes a target and its threads; gives a rank's registers as long as its thread is on the rank's stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional, Union

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import Absent, Rank, Region
from pieglobalsfind.target import KernelThread, Target
from pieglobalsfind.targets import in_address_space


class RunningRegisters:
    """The registers of one moment's running ranks."""

    def __init__(self, target: Target, processor: Processor) -> None:
        self._target = target
        self._processor = processor
        self._threads: Optional[dict[int, KernelThread]] = None

    def registers(self, rank: Rank) -> Mapping[int, int]:
        """The registers by DWARF number; raises `RanklensError` if they are unknown or another stack's."""
        if self._threads is None or self._target.is_live:
            self._threads = {thread.tid: thread for thread in self._target.threads()}
        thread = self._threads.get(rank.kernel_thread) or self._elsewhere(rank)
        registers = thread.registers if isinstance(thread, KernelThread) else thread
        if isinstance(registers, Absent):
            sentence = f"rank {rank.rank} is running, {registers.reason}"
            raise RanklensError(sentence, "stop the job with a debugger, or take a core")
        pointer = registers.get(self._processor.stack_pointer)
        if pointer is None or self._processor.pc not in registers:
            raise RanklensError(f"rank {rank.rank} is running, its registers are unknown")
        if isinstance(rank.stack, Region) and not rank.stack.start <= pointer <= rank.stack.end:
            sentence = f"rank {rank.rank} was switched meanwhile, or handles a signal, its thread is on another stack"
            raise RanklensError(sentence, "try again")
        return registers

    def _elsewhere(self, rank: Rank) -> Union[KernelThread, Absent]:
        """The kernel thread of a rank that is a process of its own, if the target's kind can look there."""
        if rank.address_space and rank.kernel_thread:
            process = in_address_space(self._target, rank.address_space)
            if isinstance(process, Absent):
                return Absent(f"its registers are those of process {rank.address_space}")
            for thread in process.threads():
                if thread.tid == rank.kernel_thread:
                    return thread
        return Absent("its thread is unknown")
