"""A variable's scalars: every number, character, truth value and pointer that it consists of, with the path to each.

Takes types; gives (path, offset, type). Bounded: of a large variable the first `MOST` scalars. It reads no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Union

from pieglobalsfind.dwarf.types import Array, Base, Enum, Pointer, Struct, TypeTable

MOST = 1 << 20
Scalar = Union[Base, Enum, Pointer]


@dataclass(frozen=True)
class ScalarPart:
    """One scalar: `path` follows the variable's name (`[2].weight`), `offset` is in bytes from its start."""

    path: str
    offset: int
    type: Scalar


def parts(types: TypeTable, index: int) -> Iterator[ScalarPart]:
    """The scalars of a variable of type `index`, in ascending order of place; unions have all members'."""
    return islice(_parts(types, index, "", 0), MOST)


def _parts(types: TypeTable, index: int, path: str, offset: int) -> Iterator[ScalarPart]:
    bare = types.strip(index)
    if isinstance(bare, (Base, Enum, Pointer)):
        yield ScalarPart(path, offset, bare)
    elif isinstance(bare, Struct):
        for member in bare.members:
            if not member.bit_size and member.location is None:
                inner = path if member.is_base or not member.name else f"{path}.{member.name}"
                yield from _parts(types, member.type, inner, offset + member.offset)
    elif isinstance(bare, Array) and bare.data_location is None:
        yield from _elements(types, bare, path, offset)


def _elements(types: TypeTable, array: Array, path: str, offset: int) -> Iterator[ScalarPart]:
    """C's nested dimensions, or Fortran's, the first of which varies fastest."""
    bounds = [(dimension.count, dimension.lower) for dimension in array.dimensions]
    fixed = [(count, lower) for count, lower in bounds if isinstance(count, int) and isinstance(lower, int)]
    size = types.size(array.element)
    if len(fixed) != len(bounds) or size <= 0:
        return
    total = 1
    for count, _ in fixed:
        total *= max(count, 0)
    fastest_first = fixed if array.column_major else fixed[::-1]
    for number in range(min(total, MOST)):
        rest, indices = number, []
        for count, lower in fastest_first:
            indices.append(lower + rest % count)
            rest //= count
        yield from _parts(types, array.element, path + _subscript(array, indices), offset + number * size)


def _subscript(array: Array, indices: list[int]) -> str:
    if array.column_major:
        return f"({','.join(map(str, indices))})"
    return "".join(f"[{index}]" for index in reversed(indices))
