"""Computes the small DWARF expressions on objects: of Fortran's array descriptors, and where virtual bases lie.

Takes an expression, the address of the object it is about and a way to read memory. Bounded in steps; what it does not
know it refuses. Operations as in DWARF 5, section 2.5.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Union

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.types import Bound, Expression
from pieglobalsfind.model import Absent

MOST_STEPS = 200
MASK = (1 << 64) - 1

# operation: (bytes, signed)
_CONSTANTS = {
    dw.DW_OP_const1u: (1, False),
    dw.DW_OP_const1s: (1, True),
    dw.DW_OP_const2u: (2, False),
    dw.DW_OP_const2s: (2, True),
    dw.DW_OP_const4u: (4, False),
    dw.DW_OP_const4s: (4, True),
    dw.DW_OP_const8u: (8, False),
    dw.DW_OP_const8s: (8, True),
}

BINARY: dict[int, Callable[[int, int], int]] = {
    dw.DW_OP_and: operator.and_,
    dw.DW_OP_minus: operator.sub,
    dw.DW_OP_mul: operator.mul,
    dw.DW_OP_or: operator.or_,
    dw.DW_OP_plus: operator.add,
    dw.DW_OP_shl: lambda a, b: a << b if b < 64 else 0,
    dw.DW_OP_shr: lambda a, b: a >> b if b < 64 else 0,
    dw.DW_OP_shra: lambda a, b: signed(a) >> min(b, 63),
    dw.DW_OP_xor: operator.xor,
    dw.DW_OP_eq: lambda a, b: int(a == b),
    dw.DW_OP_ge: lambda a, b: int(signed(a) >= signed(b)),
    dw.DW_OP_gt: lambda a, b: int(signed(a) > signed(b)),
    dw.DW_OP_le: lambda a, b: int(signed(a) <= signed(b)),
    dw.DW_OP_lt: lambda a, b: int(signed(a) < signed(b)),
    dw.DW_OP_ne: lambda a, b: int(a != b),
}


class UnsupportedError(Exception):
    """The expression needs something that a static object does not have."""


def signed(value: int) -> int:
    """A 64-bit word as a signed number."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def evaluate(
    bound: Bound,
    address: int,
    read: Callable[[int, int], bytes],
    error: tuple[type[Exception], ...] = (),
    on_stack: bool = False,
) -> Union[int, Absent]:
    """The signed value of a bound for the object at `address`; `read(address, size)` may raise one of `error`.

    `on_stack`: the address is on the stack from the beginning, as where a member lies is computed.
    """
    if bound is None:
        return Absent("debug information does not say so")
    if isinstance(bound, int):
        return bound
    try:
        return signed(Machine(bound, address, read, on_stack).run())
    except (UnsupportedError, IndexError) as problem:
        return Absent(f"its DWARF expression can't be computed ({problem or 'it ends too early'})")
    except error as problem:
        return Absent(str(problem))


class Machine:
    """DWARF's stack machine, as far as descriptors need it."""

    def __init__(
        self, expression: Expression, address: int, read: Callable[[int, int], bytes], on_stack: bool = False
    ) -> None:
        self._code = expression.code
        self._address = address
        self._read = read
        self._position = 0
        self._stack: list[int] = [address & MASK] if on_stack else []

    def run(self) -> int:
        """The value on top of the stack at the end."""
        for _ in range(MOST_STEPS):
            if self._position >= len(self._code):
                return self._stack[-1]
            self._step(self._code[self._position])
        raise UnsupportedError("it takes too many steps")

    def _step(self, atom: int) -> None:
        self._position += 1
        if dw.DW_OP_lit0 <= atom <= dw.DW_OP_lit31:
            self._push(atom - dw.DW_OP_lit0)
        elif atom in _CONSTANTS:
            self._push(self._fixed(*_CONSTANTS[atom]))
        elif atom in BINARY:
            right, left = self._stack.pop(), self._stack.pop()
            self._push(BINARY[atom](left, right))
        elif not self._special(atom):
            raise UnsupportedError(f"operation {atom:#x}")

    def _special(self, atom: int) -> bool:
        if atom == dw.DW_OP_push_object_address:
            self._push(self._address)
        elif atom == dw.DW_OP_deref:
            self._push(int.from_bytes(self._read(self._stack.pop(), 8), "little"))
        elif atom == dw.DW_OP_deref_size:
            size = self._fixed(1, False)
            self._push(int.from_bytes(self._read(self._stack.pop(), min(size, 8)), "little"))
        elif atom == dw.DW_OP_dup:
            self._push(self._stack[-1])
        elif atom == dw.DW_OP_swap:
            self._stack[-1], self._stack[-2] = self._stack[-2], self._stack[-1]
        elif atom == dw.DW_OP_over:
            self._push(self._stack[-2])
        elif atom in (dw.DW_OP_constu, dw.DW_OP_consts):
            self._push(self._leb128(atom == dw.DW_OP_consts))
        elif atom == dw.DW_OP_plus_uconst:
            self._push(self._stack.pop() + self._leb128(False))
        elif atom == dw.DW_OP_neg:
            self._push(-self._stack.pop())
        elif atom in (dw.DW_OP_bra, dw.DW_OP_skip):
            offset = self._fixed(2, True)
            self._position += offset if atom == dw.DW_OP_skip or self._stack.pop() else 0
        else:
            return False
        return self._position >= 0

    def _push(self, value: int) -> None:
        self._stack.append(value & MASK)

    def _fixed(self, size: int, is_signed: bool) -> int:
        if self._position + size > len(self._code):
            raise IndexError
        value = int.from_bytes(self._code[self._position : self._position + size], "little", signed=is_signed)
        self._position += size
        return value

    def _leb128(self, is_signed: bool) -> int:
        value = shift = 0
        while True:
            byte = self._code[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80 or shift > 70:
                return value - (1 << shift) if is_signed and byte & 0x40 else value
