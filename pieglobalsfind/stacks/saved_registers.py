"""The registers of suspended ranks, from where their runtime saved them.

Takes a target and its rank table; believes a context only if it makes sense: aligned, its stack pointer in the rank's
stack, its pc in executable memory. `unwind.py`, or a debugger, walks the stack from there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from copy import copy
from typing import Optional

from pieglobalsfind.decoders.registry.live_state import while_suspended
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, UsageError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import RUNNING, Absent, Rank, RankTable, Region
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import MemoryMapping, Target, read_many
from pieglobalsfind.targets import cut_short

WORD = 8
_MASK = (1 << 64) - 1
_word = struct.Struct("<Q").unpack_from
MOST_ASKED = 4  # ranks, before the whole memory map is read
_SWITCHING = "it is being switched at this moment, or its record is damaged"


class Contexts:
    """The contexts of a target's ranks, for one moment."""

    def __init__(self, target: Target, table: RankTable, maps: Sequence[MemoryMapping] = ()) -> None:
        self._target = target
        self._table = table
        self._maps = maps
        self._asked = 0
        self._executable: Optional[list[MemoryMapping]] = None
        self._layout = [
            (register_rule.dwarf_register, register_rule.saved, register_rule.offset)
            for register_rule in table.context_layout
        ]
        saved = [register_rule.offset for register_rule in table.context_layout if register_rule.saved]
        self._low = min(saved, default=0)
        self._size = max(saved, default=-WORD) + WORD - self._low
        self._processor = table.processor

    def at_moment(self, target: Target, table: RankTable) -> Contexts:
        """The same for a later moment of the process; where code is, is asked again if a pc lies elsewhere."""
        later = copy(self)
        later._target, later._table = target, table
        later._asked = MOST_ASKED
        return later

    def registers(self, rank: Rank) -> dict[int, int]:
        """DWARF register number -> value; raises `RanklensError` if the rank runs or its context is damaged."""
        if rank.state == RUNNING:
            raise UsageError(
                f"rank {rank.rank} is running: its registers are its kernel thread's", "select that thread"
            )
        if not self._table.context_layout:
            raise RanklensError(f"where rank {rank.rank} saves its registers is unknown", "its runtime does not say")
        return while_suspended(self._target, self._table, rank, self.saved)[1]

    def saved(self, rank: Rank) -> dict[int, int]:
        """What is saved at `rank.context`, believed only if the rank is known to stand still meanwhile."""
        if isinstance(rank.context, Absent):
            raise RanklensError(f"rank {rank.rank} has no saved registers, {rank.context.reason}", rank.context.hint)
        registers = self._read(rank, rank.context)
        self._check(rank, rank.context, registers)
        return registers

    def saved_of_many(self, ranks: Sequence[Rank]) -> list[Optional[dict[int, int]]]:
        """`saved` of many, read together; None in place of a rank of which it raises."""
        contexts = [rank.context if isinstance(rank.context, int) else 0 for rank in ranks]
        pieces = read_many(self._target, [(context + self._low, self._size) for context in contexts])
        return [
            None if data is None else self._believed(rank, context, data)
            for rank, context, data in zip(ranks, contexts, pieces)
        ]

    def _believed(self, rank: Rank, context: int, data: bytes) -> Optional[dict[int, int]]:
        registers = self._registers(context, data)
        try:
            self._check(rank, context, registers)
        except RanklensError:
            return None
        return registers

    def _read(self, rank: Rank, context: int) -> dict[int, int]:
        try:
            data = self._target.read(context + self._low, self._size)
        except MemoryUnreadable as error:
            raise RanklensError(f"rank {rank.rank} has no readable context, {error.sentence}", _SWITCHING) from error
        return self._registers(context, data)

    def _registers(self, context: int, data: bytes) -> dict[int, int]:
        registers = {
            register: _word(data, offset - self._low)[0] if saved else (context + offset) & _MASK
            for register, saved, offset in self._layout
        }
        if self._processor.pc in registers:
            registers[self._processor.pc] &= self._processor.code_mask
        return self._processor.resumed(self._target.read, registers)

    def _check(self, rank: Rank, context: int, registers: dict[int, int]) -> None:
        """The stack pointer may be the stack's very end: then nothing is pushed yet."""
        stack, pc = registers.get(self._processor.stack_pointer), registers.get(self._processor.pc)
        if stack is None or pc is None:
            raise RanklensError(f"contexts of {self._table.runtime or 'this runtime'} hold no stack pointer or no pc")
        wrong = ""
        if context % WORD or stack % WORD:
            wrong = "it is not aligned"
        elif isinstance(rank.stack, Region) and not rank.stack.start <= stack <= rank.stack.end:
            wrong = f"its stack pointer {stack:#x} is outside the rank's stack"
        elif not self._is_executable(pc):
            wrong = f"its pc {pc:#x} is not in executable memory"
        if wrong and cut_short(self._target):
            raise RanklensError(f"rank {rank.rank} has a context that can't be checked, the core file is cut short")
        if wrong:
            raise RanklensError(f"the context of rank {rank.rank} at {context:#x} is invalid, {wrong}", _SWITCHING)

    def _is_executable(self, pc: int) -> bool:
        """By the memory map, read once more if what is known of it does not have the pc.

        A debugger asks of one rank: for it a thousand ranks' mappings are not read.
        """
        if self._executable is None and self._asked < MOST_ASKED:
            self._asked += 1
            mapping = mapping_at(self._maps, pc)
            if mapping is not None and mapping.executable:
                return True
        if self._executable is None:
            self._executable = _executable(self._maps, self._table.entry_function)
        if range_at(self._executable, pc) is None:
            self._executable = _executable(self._target.maps(), self._table.entry_function)
        return range_at(self._executable, pc) is not None


def _executable(maps: Sequence[MemoryMapping], entry: int) -> list[MemoryMapping]:
    """Where code may be. `entry` is a known piece of it; an emulator's process need not execute the memory it is in."""
    entry_mapping = mapping_at(maps, entry) if entry else None
    is_emulated = entry_mapping is not None and entry_mapping.readable and not entry_mapping.executable
    return [mapping for mapping in maps if mapping.executable or (is_emulated and mapping.readable)]
