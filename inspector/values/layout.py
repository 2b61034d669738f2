"""What lies at an offset inside a variable: members, elements and padding, and where its pointers are.

Takes a `TypeTable`; pure. Unions answer with every alternative. Bounded for arrays and structs of absurd size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pieglobalsfind.dwarf.types import Array, Member, MemberPointer, Pointer, Qualified, Struct, Typedef, TypeTable

WORD = 8
MOST_POINTERS = 100_000  # per variable
INTEGERS_FOR_POINTERS = ("uintptr_t", "intptr_t")


@dataclass(frozen=True)
class Leaf:
    """A scalar within a variable: its path (".where[2]"), type, first byte from the variable's start."""

    path: str
    type: int
    offset: int
    size: int
    in_union: bool


def leaves_at(types: TypeTable, index: int, offset: int, size: int = WORD) -> list[Leaf]:
    """The scalars that share a byte with [offset, offset+size) of a variable; none where there is only padding."""
    return list(_leaves(types, index, offset, size, Leaf("", index, 0, 0, False), 0))


def _leaves(types: TypeTable, index: int, offset: int, size: int, at: Leaf, depth: int) -> Iterator[Leaf]:
    bare = types.strip(index)
    extent = types.size(index)
    if depth > 50 or offset + size <= at.offset or offset >= at.offset + extent:
        return
    if isinstance(bare, Struct) and not bare.opaque:
        for member in placed(bare):
            path = f"{at.path}.{member.name}" if member.name else at.path
            inner = Leaf(path, member.type, at.offset + member.offset, 0, at.in_union or bare.kind == "union")
            yield from _leaves(types, member.type, offset, size, inner, depth + 1)
    elif isinstance(bare, Array) and bare.data_location is None:
        yield from _elements(types, bare, offset, size, at, depth)
    else:
        yield Leaf(at.path, index, at.offset, extent, at.in_union)


def placed(bare: Struct) -> Iterator[Member]:
    """The members whose place the type tells: that of a virtual base class only the object does."""
    return (member for member in bare.members if member.location is None)


def is_told_whole(types: TypeTable, index: int, depth: int = 0) -> bool:
    """Whether what no member covers is padding.

    A virtual base class may be there as well, or one that is only declared: clang describes a class with virtual
    functions where the first of these is defined, and nowhere else.
    """
    bare = types.strip(index)
    if depth > 50:
        return False
    if isinstance(bare, Array):
        return is_told_whole(types, bare.element, depth + 1)
    if isinstance(bare, Struct) and bare.opaque:
        return False
    members = bare.members if isinstance(bare, Struct) else ()
    return all(member.location is None and is_told_whole(types, member.type, depth + 1) for member in members)


def _elements(types: TypeTable, bare: Array, offset: int, size: int, at: Leaf, depth: int) -> Iterator[Leaf]:
    element = types.size(bare.element)
    if element <= 0:
        return
    first = max(0, (offset - at.offset) // element)
    last = min(max(0, bare.size // element - 1), (offset + size - 1 - at.offset) // element)
    for number in range(first, min(last, first + WORD) + 1):
        inner = Leaf(at.path + subscript(bare, number), bare.element, at.offset + number * element, 0, at.in_union)
        yield from _leaves(types, bare.element, offset, size, inner, depth + 1)


def subscript(bare: Array, number: int) -> str:
    """`[1][2]` in C, `(3,2)` in Fortran, for the element at a place in memory."""
    counts = [
        dimension.count if isinstance(dimension.count, int) and dimension.count > 0 else 1
        for dimension in bare.dimensions
    ]
    lowest = [dimension.lower if isinstance(dimension.lower, int) else 0 for dimension in bare.dimensions]
    numbers = [0] * len(counts)
    for place in range(len(counts)) if bare.column_major else reversed(range(len(counts))):
        number, numbers[place] = divmod(number, counts[place])
    shown = [str(index + low) for index, low in zip(numbers, lowest)]
    return f"({','.join(shown)})" if bare.column_major else "".join(f"[{index}]" for index in shown)


def is_pointer(types: TypeTable, leaf: Leaf, offset: int) -> bool:
    """Whether the word at `offset` of the variable is a pointer by type, that of a Fortran descriptor included."""
    bare = types.strip(leaf.type)
    if isinstance(bare, Array):
        return bare.data_location is not None and offset == leaf.offset
    pair_of_function = isinstance(bare, MemberPointer) and bare.size == 2 * WORD
    return (isinstance(bare, Pointer) or pair_of_function) and offset == leaf.offset


def holds_address(types: TypeTable, leaf: Leaf) -> bool:
    """Whether the integer's type says that it may hold an address: uintptr_t, intptr_t."""
    current = types[leaf.type]
    while isinstance(current, (Typedef, Qualified)):
        if isinstance(current, Typedef) and current.name.rpartition("::")[2] in INTEGERS_FOR_POINTERS:
            return True
        current = types[current.target]
    return False


def pointer_offsets(types: TypeTable, index: int) -> list[int]:
    """Offsets of all pointers in a variable of this type, at most `MOST_POINTERS`."""
    offsets: list[int] = []
    _collect(types, index, 0, offsets, 0)
    return offsets


def address_offsets(types: TypeTable, index: int) -> list[int]:
    """Offsets of all words of a variable that may be an address: pointers, and what its type says nothing of."""
    pointers = pointer_offsets(types, index)
    if is_told_whole(types, index):
        return pointers
    words = range(0, types.size(index) - WORD + 1, WORD)
    return sorted({*pointers, *islice((word for word in words if not leaves_at(types, index, word)), MOST_POINTERS)})


def _collect(types: TypeTable, index: int, start: int, offsets: list[int], depth: int) -> None:
    bare = types.strip(index)
    if depth > 50 or len(offsets) >= MOST_POINTERS:
        return
    if isinstance(bare, Struct):
        for member in placed(bare):
            _collect(types, member.type, start + member.offset, offsets, depth + 1)
    elif isinstance(bare, Array) and bare.data_location is None:
        element: list[int] = []
        _collect(types, bare.element, 0, element, depth + 1)
        size = types.size(bare.element)
        count = bare.size // size if size and element else 0
        for number in range(min(count, MOST_POINTERS // max(1, len(element)))):
            offsets.extend(start + number * size + offset for offset in element)
    elif is_pointer(types, Leaf("", index, 0, 0, False), 0):
        offsets.append(start)
