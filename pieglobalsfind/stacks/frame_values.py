"""Compute the bytes or the address of an argument or variable in one frame, at the place that debug information gives.

Takes expressions of `dwarf/argument_locations.py`, a frame's registers and memory; computes them as DWARF 5, 2.5 says.
What is nowhere (optimized out) is None; what this machine does not know is `UnsupportedError`, never a guess.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.argument_locations import ENTRY_VALUES, Passed, Step, Steps
from pieglobalsfind.dwarf.expression import BINARY, MASK, UnsupportedError, signed
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation

CFA_ALONE = (Step(dw.DW_OP_call_frame_cfa),)
WORD = 8

_CONSTANTS = range(dw.DW_OP_const1u, dw.DW_OP_consts + 1)
_UNARY: dict[int, Callable[[int], int]] = {
    dw.DW_OP_abs: lambda a: abs(signed(a)),
    dw.DW_OP_neg: operator.neg,
    dw.DW_OP_not: operator.invert,
}


class NowhereError(Exception):
    """A register that no frame saved, or an entry value that the call site does not tell."""


@dataclass(frozen=True)
class FrameScope:
    """What expressions of one frame may use. `bias` is what to add to p_vaddr's, `base` its frame base.

    `call` gives what the frame's call site passes, by register, and the caller's frame; None if it has none.
    """

    activation: Activation
    memory: Memory
    bias: int
    base: Steps
    call: Callable[[], Optional[tuple[Mapping[int, Passed], FrameScope]]]


def value(steps: Steps, size: int, frame: FrameScope) -> Optional[bytes]:
    """The `size` bytes that an expression means in a frame; raises `UnsupportedError` or `MemoryUnreadable`."""
    if not steps:
        return None
    if len(steps) == 1 and (dw.DW_OP_reg0 <= steps[0].atom < dw.DW_OP_reg0 + 32 or steps[0].atom == dw.DW_OP_regx):
        first = steps[0]
        held = frame.activation.registers.get(
            first.number if first.atom == dw.DW_OP_regx else first.atom - dw.DW_OP_reg0
        )
        return None if held is None else _low_bytes(held, size)
    try:
        result, is_value = _run(steps, frame)
    except NowhereError:
        return None
    return _low_bytes(result, size) if is_value else frame.memory.read(result, size)


def address(steps: Steps, frame: FrameScope) -> Optional[int]:
    """Where the object lies that an expression means, None if not in memory; raises `UnsupportedError`."""
    if not steps or dw.DW_OP_reg0 <= steps[0].atom < dw.DW_OP_reg0 + 32 or steps[0].atom == dw.DW_OP_regx:
        return None
    result, is_value = _run(steps, frame)
    return None if is_value else result


def entry_value(register: Optional[int], size: int, frame: FrameScope, as_register: bool = False) -> Optional[bytes]:
    """What a register held when the frame's function was called, by its call site; None if that does not tell.

    `as_register`: of a reference the address is wanted, not what debuggers show of it.
    """
    call = frame.call() if register is not None else None
    passed = call[0].get(register) if call is not None and register is not None else None
    if call is None or passed is None:
        return None
    if passed.has_data and not as_register:
        raise UnsupportedError("a reference's value at entry")
    try:
        result, _ = _run(passed.value, call[1])
    except NowhereError:
        return None
    return _low_bytes(result, size)


def _low_bytes(word: int, size: int) -> bytes:
    if size > WORD:
        raise UnsupportedError("a value wider than a word")
    return word.to_bytes(WORD, "little")[:size]


def _run(steps: Steps, frame: FrameScope, depth: int = 0) -> tuple[int, bool]:
    """The result, and whether it is the value itself (else the address at which it lies)."""
    stack: list[int] = []
    is_value = False
    for step in steps:
        if is_value or depth > 4:
            raise UnsupportedError("it goes on after its end")
        is_value = step.atom == dw.DW_OP_stack_value
        if not is_value:
            _step(step, stack, frame, depth)
    if not stack:
        raise UnsupportedError("it ends without a result")
    return stack[-1], is_value


def _step(step: Step, stack: list[int], frame: FrameScope, depth: int) -> None:
    atom = step.atom
    try:
        if dw.DW_OP_lit0 <= atom <= dw.DW_OP_lit31:
            stack.append(atom - dw.DW_OP_lit0)
        elif dw.DW_OP_breg0 <= atom < dw.DW_OP_breg0 + 32:
            stack.append((_register(frame, atom - dw.DW_OP_breg0) + step.number) & MASK)
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
        raise UnsupportedError("it needs more operands than there are") from error


def _of_frame(step: Step, stack: list[int], frame: FrameScope, depth: int) -> bool:
    atom = step.atom
    if atom == dw.DW_OP_fbreg:
        stack.append((_frame_base(frame, depth) + step.number) & MASK)
    elif atom == dw.DW_OP_call_frame_cfa:
        stack.append(frame.activation.cfa)
    elif atom == dw.DW_OP_addr:
        stack.append((step.number + frame.bias) & MASK)
    elif atom == dw.DW_OP_bregx:
        stack.append((_register(frame, step.number) + step.second) & MASK)
    elif atom == dw.DW_OP_GNU_parameter_ref:
        raise NowhereError  # a parameter that is optimized away: few call sites describe one
    elif atom == ENTRY_VALUES[0]:
        stack.append(_at_entry(step, frame))
    else:
        return False
    return True


def _of_stack(step: Step, stack: list[int], frame: FrameScope) -> None:
    atom = step.atom
    if atom == dw.DW_OP_plus_uconst:
        stack.append((stack.pop() + step.number) & MASK)
    elif atom == dw.DW_OP_deref:
        stack.append(int.from_bytes(frame.memory.read(stack.pop(), WORD), "little"))
    elif atom == dw.DW_OP_deref_size and 0 < step.number <= WORD:
        stack.append(int.from_bytes(frame.memory.read(stack.pop(), step.number), "little"))
    elif atom == dw.DW_OP_dup:
        stack.append(stack[-1])
    elif atom == dw.DW_OP_drop:
        stack.pop()
    elif atom == dw.DW_OP_over:
        stack.append(stack[-2])
    elif atom == dw.DW_OP_swap:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif atom != dw.DW_OP_nop:
        raise UnsupportedError(f"operation {atom:#x}")


def _frame_base(frame: FrameScope, depth: int) -> int:
    if frame.base == CFA_ALONE:
        return frame.activation.cfa
    if len(frame.base) == 1 and dw.DW_OP_reg0 <= frame.base[0].atom < dw.DW_OP_reg0 + 32:
        return _register(frame, frame.base[0].atom - dw.DW_OP_reg0)
    return _run(frame.base, frame, depth + 1)[0]


def _register(frame: FrameScope, number: int) -> int:
    """Of a register that is lost no address can be computed, and a debugger says so in words of its own."""
    saved = frame.activation.registers.get(number)
    if saved is None:
        raise UnsupportedError(f"register {number} is lost")
    return saved


def _at_entry(step: Step, frame: FrameScope) -> int:
    first = step.inner[0].atom if len(step.inner) == 1 else 0
    if not dw.DW_OP_reg0 <= first < dw.DW_OP_reg0 + 32:
        raise UnsupportedError("an entry value that is in no register")
    data = entry_value(first - dw.DW_OP_reg0, WORD, frame, as_register=True)
    if data is None:
        raise NowhereError
    return int.from_bytes(data, "little")
