"""Compute the address of an array's element in a rank, also in a vector, a deque or an allocatable array.

Takes a type, an address and indices; gives an address, or why the rank has no such element. Lengths are the target's:
each index is checked against them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.types import Array, Struct, TypeTable
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent
from pieglobalsfind.values.array_extents import dense_extents, described_extents
from pieglobalsfind.values.containers.bounded_contents import ContainedObject, ContentSource, NoValue
from pieglobalsfind.values.containers.recognize import element_count, element_place, sequence_element, too_few
from pieglobalsfind.values.surroundings import Surroundings

STD_ARRAY = ("_M_elems", "__elems_")  # of libstdc++ and of libc++


def bare_array(types: TypeTable, index: int) -> int:
    """The C array in a `std::array`; any other type itself."""
    bare = types.strip(index)
    if isinstance(bare, Struct) and "array<" in bare.name.partition(",")[0]:
        place = next(filter(None, (types.place(index, name) for name in STD_ARRAY)), None)
        return place[1] if place is not None and place[0] == 0 else index
    return index


def levels(types: TypeTable, index: int) -> Optional[tuple[int, int]]:
    """How many indices the type takes at once, and the type of its elements; None if it has none."""
    bare = types.strip(bare_array(types, index))
    if isinstance(bare, Array):
        return len(bare.dimensions), bare.element
    element = sequence_element(types, index)
    return None if element is None else (1, element)


def place_of(around: Surroundings, index: int, address: int, indices: Sequence[tuple[int, ...]]) -> Union[int, Absent]:
    """Where the element lies, level by level: `indices` are as the language writes them."""
    for numbers in indices:
        level = levels(around.types, index)
        assert level is not None
        place = _step(around, bare_array(around.types, index), address, numbers)
        if isinstance(place, Absent):
            return place
        address, index = place, level[1]
    return address


def _step(around: Surroundings, index: int, address: int, numbers: tuple[int, ...]) -> Union[int, Absent]:
    bare = around.types.strip(index)
    if not isinstance(bare, Array):
        return _in_container(around, index, address, numbers[0])
    size = around.types.size(bare.element)
    extents = dense_extents(bare, size)
    if bare.data_location is not None:
        described = described_extents(around, bare, address, size)
        if isinstance(described, str):
            return Absent(described.strip("<>"))
        address, extents = described
    if extents is None:
        return Absent("its length is not known")
    for number, extent in zip(numbers[::-1] if bare.column_major else numbers, extents):
        if not extent.lowest <= number < extent.lowest + extent.count:
            span = f"elements {extent.lowest} to {extent.lowest + extent.count - 1}"
            return Absent(f"it has {span}") if extent.count else too_few(0)
        address += (number - extent.lowest) * extent.stride
    return address


def bounds_of(around: Surroundings, index: int, address: int) -> Union[list[tuple[int, int]], Absent]:
    """The lowest and the highest index of each dimension, as the language writes them; raises nothing."""
    inner = bare_array(around.types, index)
    bare = around.types.strip(inner)
    if not isinstance(bare, Array):
        count = _of_container(around, index, address, element_count)
        return count if isinstance(count, Absent) else [(0, count - 1)]
    extents = dense_extents(bare, around.types.size(bare.element))
    if bare.data_location is not None:
        described = described_extents(around, bare, address, around.types.size(bare.element))
        extents = None if isinstance(described, str) else described[1]
    if extents is None:
        return Absent("its length is not known")
    bounds = [(extent.lowest, extent.lowest + extent.count - 1) for extent in extents]
    return bounds[::-1] if bare.column_major else bounds


def _in_container(around: Surroundings, index: int, address: int, number: int) -> Union[int, Absent]:
    return _of_container(around, index, address, partial(element_place, number=number))


def _of_container(
    around: Surroundings,
    index: int,
    address: int,
    ask: Callable[[ContentSource, ContainedObject], Union[int, Absent]],
) -> Union[int, Absent]:
    source = ContentSource(around.types, around.read, _no_text, _not_plain, around.contents)
    try:
        data = around.read(address, around.types.size(index))
        return ask(source, ContainedObject(index, address, data))
    except NoValue as why:
        return Absent(f"not readable: {why}")
    except MemoryUnreadable as error:
        return Absent(f"can't be read, {error.why}")


def _no_text(part: ContainedObject) -> str:
    return ""


def _not_plain(index: int) -> bool:
    return False
