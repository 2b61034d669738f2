"""Computes the small DWARF expressions that Fortran's array descriptors use: bounds, strides, where the data lies.

Takes an expression, the address of the object it is about and a way to read memory. Bounded in steps; what it does not
know it refuses. Operations as in DWARF 5, section 2.5.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Union

from pieglobalsfind.dwarf_types import Bound, Expression
from pieglobalsfind.model import Absent

MOST_STEPS = 200
MASK = (1 << 64) - 1

# operation: (bytes, signed)
_CONSTANTS = {
    0x08: (1, False),
    0x09: (1, True),
    0x0A: (2, False),
    0x0B: (2, True),
    0x0C: (4, False),
    0x0D: (4, True),
    0x0E: (8, False),
    0x0F: (8, True),
}

BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_,
    0x1C: operator.sub,
    0x1E: operator.mul,
    0x21: operator.or_,
    0x22: operator.add,
    0x24: lambda a, b: a << b if b < 64 else 0,
    0x25: lambda a, b: a >> b if b < 64 else 0,
    0x26: lambda a, b: signed(a) >> min(b, 63),
    0x27: operator.xor,
    0x29: lambda a, b: int(a == b),
    0x2A: lambda a, b: int(signed(a) >= signed(b)),
    0x2B: lambda a, b: int(signed(a) > signed(b)),
    0x2C: lambda a, b: int(signed(a) <= signed(b)),
    0x2D: lambda a, b: int(signed(a) < signed(b)),
    0x2E: lambda a, b: int(a != b),
}


class UnsupportedError(Exception):
    """The expression needs something that a static object does not have."""


def signed(value: int) -> int:
    """A 64-bit word as a signed number."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def evaluate(
    bound: Bound, address: int, read: Callable[[int, int], bytes], error: tuple[type[Exception], ...] = ()
) -> Union[int, Absent]:
    """The signed value of a bound for the object at `address`; `read(address, size)` may raise one of `error`."""
    if bound is None:
        return Absent("debug information does not say it")
    if isinstance(bound, int):
        return bound
    try:
        return signed(Machine(bound, address, read).run())
    except (UnsupportedError, IndexError) as problem:
        return Absent(f"its DWARF expression cannot be computed ({problem or 'it ends too early'})")
    except error as problem:
        return Absent(str(problem))


class Machine:
    """DWARF's stack machine, as far as descriptors need it."""

    def __init__(self, expression: Expression, address: int, read: Callable[[int, int], bytes]) -> None:
        self._code = expression.code
        self._address = address
        self._read = read
        self._position = 0
        self._stack: list[int] = []

    def run(self) -> int:
        """The value on top of the stack at the end."""
        for _ in range(MOST_STEPS):
            if self._position >= len(self._code):
                return self._stack[-1]
            self._step(self._code[self._position])
        raise UnsupportedError("it takes too many steps")

    def _step(self, atom: int) -> None:
        self._position += 1
        if 0x30 <= atom <= 0x4F:  # DW_OP_lit0 .. lit31
            self._push(atom - 0x30)
        elif atom in _CONSTANTS:
            self._push(self._fixed(*_CONSTANTS[atom]))
        elif atom in BINARY:
            right, left = self._stack.pop(), self._stack.pop()
            self._push(BINARY[atom](left, right))
        elif not self._special(atom):
            raise UnsupportedError(f"operation {atom:#x}")

    def _special(self, atom: int) -> bool:
        if atom == 0x97:  # push_object_address
            self._push(self._address)
        elif atom == 0x06:  # deref
            self._push(int.from_bytes(self._read(self._stack.pop(), 8), "little"))
        elif atom == 0x94:  # deref_size
            size = self._fixed(1, False)
            self._push(int.from_bytes(self._read(self._stack.pop(), min(size, 8)), "little"))
        elif atom == 0x12:  # dup
            self._push(self._stack[-1])
        elif atom == 0x16:  # swap
            self._stack[-1], self._stack[-2] = self._stack[-2], self._stack[-1]
        elif atom == 0x14:  # over
            self._push(self._stack[-2])
        elif atom in (0x10, 0x11):  # constu, consts
            self._push(self._leb128(atom == 0x11))
        elif atom == 0x23:  # plus_uconst
            self._push(self._stack.pop() + self._leb128(False))
        elif atom == 0x1F:  # neg
            self._push(-self._stack.pop())
        elif atom in (0x28, 0x2F):  # bra, skip
            offset = self._fixed(2, True)
            self._position += offset if atom == 0x2F or self._stack.pop() else 0
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
