"""Read a type and all that it contains by value; cut circles, and compute the sizes that DWARF leaves out.

Takes a function that reads one type; fills a table. Bounds what damaged files hold: loops, and very many levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pieglobalsfind.dwarf.types import Array, Function, Qualified, Type, Typedef, Void, by_value

MOST_LEVELS = 300  # types that lie within one another
LARGEST_SIZE = 1 << 48  # bytes; more than an x86-64 process can map

_BEING_READ = -1  # in place of how many levels of types lie within a type


def settle(start: int, types: dict[int, Type], levels: dict[int, int], read: Callable[[int], Type]) -> None:
    """Read a type and all that lies within its objects; cut what would contain itself, give arrays their sizes.

    `levels` are those of types within each that is settled. Only a damaged file holds loops, or very many levels.
    """
    stack = [start]
    while stack:
        index = stack[-1]
        if index not in levels:
            types[index] = read(index)
            levels[index] = _BEING_READ
            if any(levels.get(inner) == _BEING_READ for inner in by_value(types[index])):
                types[index] = Void("void", 0, "a type that contains itself")
            stack += [inner for inner in by_value(types[index]) if inner not in levels]
        else:
            stack.pop()
            if levels[index] == _BEING_READ:
                levels[index] = 1 + max((levels[inner] for inner in by_value(types[index])), default=0)
                types[index] = with_size(types[index], types)
            if levels[index] > MOST_LEVELS:
                levels[index], types[index] = 0, Void(reason="there are too many types within one another")


def with_size(incomplete: Type, types: dict[int, Type]) -> Type:
    """An array's size from its dimensions, where DWARF leaves it out."""
    if not isinstance(incomplete, Array) or incomplete.size:
        return incomplete
    if incomplete.data_location is not None:
        return replace(incomplete, size=40 + 24 * len(incomplete.dimensions))  # gfortran's descriptor (libgfortran.h)
    size = size_of(incomplete.element, types)
    for dimension in incomplete.dimensions:
        size *= dimension.count if isinstance(dimension.count, int) else 0
    return replace(incomplete, size=size if size <= LARGEST_SIZE else 0)


def size_of(index: int, types: dict[int, Type]) -> int:
    """Return a type's size in bytes, 0 for functions."""
    bare = types[index]
    while isinstance(bare, (Typedef, Qualified)):
        bare = types[bare.target]
    return 0 if isinstance(bare, Function) else bare.size
