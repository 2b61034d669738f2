"""The bytes of an argument in one frame of one rank, from where debug information says that it is.

Takes expressions of `dwarf_arguments` and a frame's registers and memory; computes them as DWARF 5, 2.5 says. What is
nowhere (optimized out) is None; what this machine does not know is `UnsupportedError`, never a guess.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf_arguments import OP_ENTRY_VALUES, Passed, Step, Steps
from pieglobalsfind.dwarf_expression import BINARY, MASK, UnsupportedError, signed
from pieglobalsfind.stack_walk import Activation, Memory

OP_ADDRESS, OP_FRAME_BASE, OP_BREG0, OP_BREGX, OP_CFA, OP_STACK_VALUE = 0x03, 0x91, 0x70, 0x92, 0x9C, 0x9F
OP_REG0, OP_REGX, OP_GNU_PARAMETER_REF = 0x50, 0x90, 0xFA
CFA_ALONE = (Step(OP_CFA),)
WORD = 8

_CONSTANTS = (0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11)  # const1u to const8s, constu, consts
_UNARY: dict[int, Callable[[int], int]] = {0x19: lambda a: abs(signed(a)), 0x1F: operator.neg, 0x20: operator.invert}


class NowhereError(Exception):
    """A register that nobody saved, or an entry value that the call site does not tell."""


@dataclass(frozen=True)
class Frame:
    """What expressions of one frame may use. `bias` is what to add to p_vaddr's, `base` its frame base.

    `call` gives what the frame's call site passes, by register, and the caller's frame; None if it has none.
    """

    activation: Activation
    memory: Memory
    bias: int
    base: Steps
    call: Callable[[], Optional[tuple[Mapping[int, Passed], Frame]]]


def value(steps: Steps, size: int, frame: Frame) -> Optional[bytes]:
    """The `size` bytes that an expression means in a frame; raises `UnsupportedError` or `MemoryUnreadable`."""
    if not steps:
        return None
    if len(steps) == 1 and (OP_REG0 <= steps[0].atom < OP_REG0 + 32 or steps[0].atom == OP_REGX):
        first = steps[0]
        held = frame.activation.registers.get(first.number if first.atom == OP_REGX else first.atom - OP_REG0)
        return None if held is None else _low_bytes(held, size)
    try:
        found, is_value = _run(steps, frame)
    except NowhereError:
        return None
    return _low_bytes(found, size) if is_value else frame.memory.read(found, size)


def address(steps: Steps, frame: Frame) -> Optional[int]:
    """Where the object lies that an expression means, None if not in memory; raises `UnsupportedError`."""
    if not steps or OP_REG0 <= steps[0].atom < OP_REG0 + 32 or steps[0].atom == OP_REGX:
        return None
    found, is_value = _run(steps, frame)
    return None if is_value else found


def entry_value(register: Optional[int], size: int, frame: Frame) -> Optional[bytes]:
    """What a register held when the frame's function was called, by its call site; None if that does not tell."""
    call = frame.call() if register is not None else None
    passed = call[0].get(register) if call is not None and register is not None else None
    if call is None or passed is None:
        return None
    if passed.has_data:
        raise UnsupportedError("a reference's value at entry")
    try:
        found, _ = _run(passed.value, call[1])
    except NowhereError:
        return None
    return _low_bytes(found, size)


def _low_bytes(word: int, size: int) -> bytes:
    if size > WORD:
        raise UnsupportedError("a value wider than a word")
    return word.to_bytes(WORD, "little")[:size]


def _run(steps: Steps, frame: Frame, depth: int = 0) -> tuple[int, bool]:
    """The result, and whether it is the value itself (else the address at which it lies)."""
    stack: list[int] = []
    is_value = False
    for step in steps:
        if is_value or depth > 4:
            raise UnsupportedError("it goes on behind its end")
        is_value = step.atom == OP_STACK_VALUE
        if not is_value:
            _step(step, stack, frame, depth)
    if not stack:
        raise UnsupportedError("it ends without a result")
    return stack[-1], is_value


def _step(step: Step, stack: list[int], frame: Frame, depth: int) -> None:
    atom = step.atom
    try:
        if 0x30 <= atom <= 0x4F:  # lit0 to lit31
            stack.append(atom - 0x30)
        elif OP_BREG0 <= atom < OP_BREG0 + 32:
            stack.append((_register(frame, atom - OP_BREG0) + step.number) & MASK)
        elif atom in _CONSTANTS:
            stack.append(step.number & MASK)
        elif atom in BINARY:
            right, left = stack.pop(), stack.pop()
            stack.append(BINARY[atom](left, right) & MASK)
        elif atom in _UNARY:
            stack.append(_UNARY[atom](stack.pop()) & MASK)
        elif not _of_frame(step, stack, frame, depth):
            _of_stack(step, stack, frame)
    except IndexError as error:
        raise UnsupportedError("it takes more than there is") from error


def _of_frame(step: Step, stack: list[int], frame: Frame, depth: int) -> bool:
    atom = step.atom
    if atom == OP_FRAME_BASE:
        stack.append((_frame_base(frame, depth) + step.number) & MASK)
    elif atom == OP_CFA:
        stack.append(frame.activation.cfa)
    elif atom == OP_ADDRESS:
        stack.append((step.number + frame.bias) & MASK)
    elif atom == OP_BREGX:
        stack.append((_register(frame, step.number) + step.second) & MASK)
    elif atom == OP_GNU_PARAMETER_REF:
        raise NowhereError  # a parameter that is optimized away: few call sites tell of one
    elif atom == OP_ENTRY_VALUES[0]:
        stack.append(_at_entry(step, frame))
    else:
        return False
    return True


def _of_stack(step: Step, stack: list[int], frame: Frame) -> None:
    atom = step.atom
    if atom == 0x23:  # plus_uconst
        stack.append((stack.pop() + step.number) & MASK)
    elif atom == 0x06:  # deref
        stack.append(int.from_bytes(frame.memory.read(stack.pop(), WORD), "little"))
    elif atom == 0x94 and 0 < step.number <= WORD:  # deref_size
        stack.append(int.from_bytes(frame.memory.read(stack.pop(), step.number), "little"))
    elif atom == 0x12:  # dup
        stack.append(stack[-1])
    elif atom == 0x13:  # drop
        stack.pop()
    elif atom == 0x14:  # over
        stack.append(stack[-2])
    elif atom == 0x16:  # swap
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif atom != 0x96:  # nop
        raise UnsupportedError(f"operation {atom:#x}")


def _frame_base(frame: Frame, depth: int) -> int:
    if frame.base == CFA_ALONE:
        return frame.activation.cfa
    if len(frame.base) == 1 and OP_REG0 <= frame.base[0].atom < OP_REG0 + 32:
        return _register(frame, frame.base[0].atom - OP_REG0)
    return _run(frame.base, frame, depth + 1)[0]


def _register(frame: Frame, number: int) -> int:
    """Of a register that is lost no address can be computed, and a debugger says so in words of its own."""
    found = frame.activation.registers.get(number)
    if found is None:
        raise UnsupportedError(f"register {number} is lost")
    return found


def _at_entry(step: Step, frame: Frame) -> int:
    first = step.inner[0].atom if len(step.inner) == 1 else 0
    if not OP_REG0 <= first < OP_REG0 + 32:
        raise UnsupportedError("an entry value that is in no register")
    found = entry_value(first - OP_REG0, WORD, frame)
    if found is None:
        raise NowhereError
    return int.from_bytes(found, "little")
