"""The registers of a suspended rank, from where its runtime saved them.

Takes a target and its rank table; checks what it reads against the rank's stack. Walking frames is the debugger's.
"""

from __future__ import annotations

from pieglobalsfind.errors import MemoryUnreadable, RanklensError, UsageError
from pieglobalsfind.model import RUNNING, Absent, Rank, RankTable, Region
from pieglobalsfind.target import Target

RSP, RIP = 7, 16  # DWARF register numbers (x86-64 psABI, figure 3.36)
_MASK = (1 << 64) - 1


def context_registers(target: Target, table: RankTable, rank: Rank) -> dict[int, int]:
    """DWARF register number -> value; raises `RanklensError` if the rank runs, or its context makes no sense."""
    if rank.state == RUNNING:
        raise UsageError(f"rank {rank.rank} is running: its registers are its kernel thread's", "select that thread")
    if isinstance(rank.context, Absent):
        raise RanklensError(f"rank {rank.rank} has no saved registers, {rank.context.reason}", rank.context.hint)
    if not table.context_layout:
        raise RanklensError(f"where rank {rank.rank} saves its registers is unknown", "its runtime does not tell")
    if isinstance(rank.stack, Region) and rank.context not in rank.stack:
        raise RanklensError(
            f"the saved registers of rank {rank.rank} would be at {rank.context:#x}, outside its stack",
            "it is being switched at this moment, or its record is damaged",
        )
    registers = read_registers(target, table, rank, rank.context)
    check(rank, registers)
    return registers


def read_registers(target: Target, table: RankTable, rank: Rank, context: int) -> dict[int, int]:
    saved = [one for one in table.context_layout if one.saved]
    low = min((one.offset for one in saved), default=0)
    high = max((one.offset for one in saved), default=0) + 8
    if high - low > 65536:
        raise RanklensError("the description of saved registers makes no sense", "the registry is damaged")
    try:
        content = target.read(context + low, high - low)
    except MemoryUnreadable as error:
        raise RanklensError(f"the saved registers of rank {rank.rank} are unreadable ({error.sentence})") from error
    return {
        one.dwarf_register: int.from_bytes(content[one.offset - low : one.offset - low + 8], "little")
        if one.saved
        else (context + one.offset) & _MASK
        for one in table.context_layout
    }


def check(rank: Rank, registers: dict[int, int]) -> None:
    """A stack pointer within the stack (its end included: nothing is pushed yet) and a pc that could be one."""
    pointer, pc = registers.get(RSP), registers.get(RIP)
    stack = rank.stack
    sound = pointer is not None and pc is not None and 4096 <= pc < 1 << 47
    if not sound or (isinstance(stack, Region) and not stack.start <= (pointer or 0) <= stack.end):
        raise RanklensError(
            f"the saved registers of rank {rank.rank} make no sense (pc {pc or 0:#x}, sp {pointer or 0:#x})",
            "it is being switched at this moment, or its record is damaged",
        )
