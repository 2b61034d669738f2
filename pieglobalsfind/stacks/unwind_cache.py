"""Recognizes a rank's stack as one that was walked already, on another rank: the same calls at the same distances.

Takes what a whole walk used: the words that it read and the registers that it began with. If another rank's words
mean the same in its own copy and its own stack, it has the same calls: one comparison replaces a walk. It reads nothing
and knows no unwind rule but what the walk hands over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import RUNNING, Rank, Rebase, Region
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.target import Target, read_many

ABSOLUTE, OF_STACK, FIRST_COPY = 0, 1, 2  # places in `bases`
WORD = 8

Used = tuple[int, tuple[tuple[int, int], ...]]  # a frame's CFA register, and (register, address) that it restores
Expected = tuple[
    int, int, int
]  # a register, or a word's number from the stack pointer; a distance, and from which base


@dataclass(frozen=True)
class StackShape:
    """What every rank with these calls has in common. `extent` is how many bytes from the stack pointer on tell it."""

    stack_pointer: int
    calls: tuple[Call, ...]
    copies: tuple[tuple[Optional[int], int, int], ...]
    registers: tuple[Expected, ...]
    words: tuple[Expected, ...]
    extent: int


def _copies_of(rank: Rank) -> tuple[Rebase, ...]:
    return tuple(placement for placement in rank.placements if isinstance(placement, Rebase))


def shape_of(
    processor: Processor,
    rank: Rank,
    first: dict[int, int],
    frames: Sequence[Used],
    words: dict[int, int],
    calls: tuple[Call, ...],
) -> StackShape:
    """The shape of a walk that ended at the rank's entry; `words` are those that it read, by address."""
    copies, start = _copies_of(rank), first[processor.stack_pointer]
    code = processor.return_address
    slots: list[tuple[int, bool]] = []  # (address, is code)
    needed: set[int] = set()  # registers by which callers are found
    for base, saved in reversed(frames):
        restored = dict(saved)
        slots += [(address, register == code) for register, address in saved if register == code or register in needed]
        needed = {number for number in needed if number not in restored} | {base} - {processor.stack_pointer}
    expected = []
    for address, is_code in slots:
        expected.append(((address - start) // WORD, *_meant(words[address], is_code, start, copies)))
    registers = [(number, first[number] - start, OF_STACK) for number in sorted(needed)]
    registers.append((processor.pc, *_meant(first[processor.pc], True, start, copies)))
    extent = max((number for number, _, _ in expected), default=-1) * WORD + WORD
    originals = tuple((copy.object, copy.original, copy.size) for copy in copies)
    return StackShape(processor.stack_pointer, calls, originals, tuple(registers), tuple(expected), extent)


def _meant(value: int, is_code: bool, start: int, copies: Sequence[Rebase]) -> tuple[int, int]:
    """(distance, from which base): code lies in a copy or where all ranks have it; all else is in the stack."""
    if not is_code:
        return value - start, OF_STACK
    for number, rebase in enumerate(copies):
        if rebase.copy <= value < rebase.copy + rebase.size:
            return value - rebase.copy, FIRST_COPY + number
    return value, ABSOLUTE


def recognized(
    target: Target, contexts: Contexts, ranks: Sequence[Rank], shapes: list[StackShape]
) -> dict[int, tuple[Call, ...]]:
    """The calls of those ranks whose stacks have one of the shapes: contexts, then stacks, are read together."""
    suspended = [rank for rank in ranks if rank.state != RUNNING and isinstance(rank.context, int)]
    registers = zip(suspended, contexts.saved_of_many(suspended))
    there = [(rank, values, *window(rank, values, shapes)) for rank, values in registers if values is not None]
    wanted = [candidate for candidate in there if candidate[3]]
    stacks = read_many(target, [(address, size) for _, _, address, size in wanted])
    calls_of = {}
    for (rank, values, _, _), data in zip(wanted, stacks):
        calls = met_before(shapes, rank, values, data) if data is not None else None
        if calls is not None:
            calls_of[rank.rank] = calls
    return calls_of


def window(rank: Rank, registers: dict[int, int], shapes: Sequence[StackShape]) -> tuple[int, int]:
    """The address and size of what tells a stack's shape; size 0 if nothing can."""
    start = registers.get(shapes[0].stack_pointer, 0) if shapes else 0
    if not shapes or not isinstance(rank.stack, Region) or start not in rank.stack:
        return 0, 0
    return start, min(max(shape.extent for shape in shapes), rank.stack.end - start) & -WORD


def met_before(
    shapes: list[StackShape], rank: Rank, registers: dict[int, int], data: bytes
) -> Optional[tuple[Call, ...]]:
    """The calls of the first shape that a rank's stack has, which is put first: the next rank is likely alike."""
    words = memoryview(data).cast("Q")
    for number, shape in enumerate(shapes):
        if is_of(shape, rank, registers, words):
            if number:
                shapes.insert(0, shapes.pop(number))
            return shape.calls
    return None


def is_of(shape: StackShape, rank: Rank, first: dict[int, int], words: Sequence[int]) -> bool:
    """Whether a rank whose registers are `first` and whose stack holds `words` from its pointer on has the shape."""
    copies = _copies_of(rank)
    if len(words) * WORD < shape.extent or len(copies) != len(shape.copies):
        return False
    if any((rebase.object, rebase.original, rebase.size) != original for rebase, original in zip(copies, shape.copies)):
        return False
    bases = bases_of(rank, first[shape.stack_pointer])
    for register, distance, base in shape.registers:
        if first.get(register) != distance + bases[base]:
            return False
    return [words[number] for number, _, _ in shape.words] == [
        distance + bases[base] for _, distance, base in shape.words
    ]


def bases_of(rank: Rank, stack_pointer: int) -> tuple[int, ...]:
    """What distances count from: nothing, the rank's stack pointer, and its copies in their order."""
    return (0, stack_pointer, *(rebase.copy for rebase in _copies_of(rank)))
