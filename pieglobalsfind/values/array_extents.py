"""Where an array's elements lie: dimensions of dense arrays by their type, of Fortran's by their descriptor.

Takes an array's type and where it lies; gives extents, slowest first. A descriptor's sizes are what the target says:
they are bounded before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.types import Array, Dimension
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes

LARGEST_READ = 1 << 26  # bytes of an allocatable array that are looked at


@dataclass(frozen=True)
class Extent:
    """One dimension of an array as it is now: `stride` in bytes, `lowest` index."""

    count: int
    stride: int
    lowest: int = 0


def dense_extents(bare: Array, element: int) -> Optional[list[Extent]]:
    """The dimensions, slowest first, or None when a count is unknown."""
    stride, extents = element, []
    for dimension in bare.dimensions if bare.column_major else reversed(bare.dimensions):
        if not isinstance(dimension.count, int):
            return None
        extents.append(Extent(dimension.count, stride, dimension.lower if isinstance(dimension.lower, int) else 0))
        stride *= dimension.count
    return extents[::-1]


@dataclass(frozen=True)
class Elements:
    """The elements that a descriptor describes: dimensions slowest first, and their bytes."""

    extents: list[Extent]
    content: VariableBytes


def described_elements(
    around: Surroundings, bare: Array, variable_bytes: VariableBytes, element: int
) -> Union[Elements, str]:
    """The elements of an array with a descriptor, or what to show instead of them."""
    extents = described_extents(around, bare, variable_bytes.address, element)
    if isinstance(extents, str):
        return extents
    start, dimensions = extents
    span = (
        sum((extent.count - 1) * extent.stride for extent in dimensions) + element
        if all(extent.count for extent in dimensions)
        else 0
    )
    if any(extent.stride < 0 for extent in dimensions) or not 0 <= span <= LARGEST_READ:
        return f"<{' x '.join(str(extent.count) for extent in dimensions[::-1])} elements>"
    try:
        data = around.read(start, span) if span else b""
    except MemoryUnreadable as error:
        return f"<{error}>"
    return Elements(dimensions, VariableBytes(start, data))


def described_extents(
    around: Surroundings, bare: Array, address: int, element: int
) -> Union[tuple[int, list[Extent]], str]:
    """Where the elements of an array with a descriptor begin (DWARF 5, 5.18.1), and its dimensions, slowest first."""
    assert bare.data_location is not None
    for expression, words in ((bare.allocated, "<not allocated>"), (bare.associated, "<not associated>")):
        if expression is not None and not truth(evaluate(expression, address, around.read, (MemoryUnreadable,))):
            return words
    start = evaluate(bare.data_location, address, around.read, (MemoryUnreadable,))
    extents = [_described_extent(around, dimension, address, element) for dimension in bare.dimensions]
    readable = [extent for extent in extents if isinstance(extent, Extent)]
    if isinstance(start, Absent) or len(readable) != len(extents):
        return f"<can't be read: {start if isinstance(start, Absent) else 'its bounds are unknown'}>"
    return start & (1 << 64) - 1, readable[::-1]


def elements_of(around: Surroundings, index: int, variable_bytes: VariableBytes) -> bytes:
    """The bytes that make up the value: of an array with a descriptor its elements, else the variable itself."""
    bare = around.types.strip(index)
    if not isinstance(bare, Array) or bare.data_location is None:
        return variable_bytes.data
    elements = described_elements(around, bare, variable_bytes, around.types.size(bare.element))
    return elements.content.data if isinstance(elements, Elements) else b""


def truth(value: Union[int, Absent]) -> bool:
    """Return whether a value is known and not zero."""
    return not isinstance(value, Absent) and value != 0


def _described_extent(around: Surroundings, dimension: Dimension, address: int, element: int) -> Optional[Extent]:
    lower, upper = (
        evaluate(bound, address, around.read, (MemoryUnreadable,)) for bound in (dimension.lower, dimension.upper)
    )
    stride = (
        element if dimension.stride is None else evaluate(dimension.stride, address, around.read, (MemoryUnreadable,))
    )
    if isinstance(lower, Absent) or isinstance(upper, Absent) or isinstance(stride, Absent):
        return None
    return Extent(max(0, upper - lower + 1), stride, lower)
