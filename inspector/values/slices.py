"""Elements of arrays as variables of their own: `grid[3]`, `grid[3:10]`, which ends with 9, `field(2:4,1)`, with 4.

Takes what the user wrote and a variable; gives a variable for each element, or how each rank finds it. Reads nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Optional, Union

from pieglobalsfind.dwarf.types import Array, Dimension, TypeTable, Variable
from pieglobalsfind.errors import MemoryUnreadable, UsageError
from pieglobalsfind.values.element_address import bare_array, levels, place_of
from pieglobalsfind.values.surroundings import Surroundings

C_FORM = re.compile(r"(?P<name>[^\[\]]+)(?P<parts>(\[\s*-?\d*\s*(:\s*-?\d*\s*)?\])+)$")
FORTRAN_FORM = re.compile(r"(?P<name>[\w:*?]+)\((?P<parts>\s*-?\d*\s*(:\s*-?\d*\s*)?(,\s*-?\d*\s*(:\s*-?\d*\s*)?)*)\)$")
MOST_ELEMENTS = 1000


Bounds = Sequence[tuple[int, int]]  # lowest and highest index, by dimension; none where no rank has any


@dataclass(frozen=True)
class IndexRange:
    """Indices of one dimension, `last` included; None: its first, its last."""

    first: Optional[int]
    last: Optional[int]


@dataclass(frozen=True)
class Slice:
    """`name` is a pattern; `spans` one for each dimension as written."""

    name: str
    spans: tuple[IndexRange, ...]


def parse(text: str) -> Optional[Slice]:
    """None for what chooses no elements: a pattern of names."""
    c_form, fortran = C_FORM.match(text), FORTRAN_FORM.match(text)
    if c_form:
        return Slice(c_form["name"], tuple(span(word, 1) for word in re.findall(r"\[([^\]]*)\]", c_form["parts"])))
    if fortran and any(letter.isdigit() for letter in fortran["parts"]):
        return Slice(fortran["name"], tuple(span(word, 0) for word in fortran["parts"].split(",")))
    return None


def span(text: str, beyond: int) -> IndexRange:
    """`3`, `3:10`, `:10`, `3:`; `beyond` is what is taken off of an end to have the last one."""
    first, colon, last = (word.strip() for word in text.partition(":"))
    if not colon:
        return IndexRange(int(first), int(first)) if first else IndexRange(None, None)
    return IndexRange(int(first) if first else None, int(last) - beyond if last else None)


@dataclass(frozen=True)
class Element:
    """An element of what each rank has elsewhere: `shown` is like a variable, in `whole` by its indices, by level."""

    shown: Variable
    whole: Variable
    indices: tuple[tuple[int, ...], ...]


def elements(
    types: TypeTable, variable: Variable, chosen: Slice, bounds: Callable[[Variable], Bounds]
) -> Iterator[Union[Variable, Element]]:
    """The elements of an array or container; raises `UsageError` if it is neither, or has none of these.

    A container, and an allocatable array, has its own length on each rank: `bounds` gives the lowest and the highest
    index that any rank has. Of what lies in another container both ends have to be named.
    """
    spans = list(chosen.spans)
    if any(None in (index_range.first, index_range.last) for index_range in spans) and has_own_length(types, variable):
        spans = with_ends(spans, bounds(variable))
    ranges, counts, element, is_fixed = ranges_of(types, variable, spans)
    total = math.prod(len(indices) for indices in ranges)
    if types.size(element) <= 0:
        raise UsageError(f"the elements of {variable.name} have no size", "leave the elements out")
    if total > MOST_ELEMENTS:
        raise UsageError(f"these are {total:,} elements", f"choose at most {MOST_ELEMENTS:,}")
    around = Surroundings(types, variable.language, _no_memory, hex)
    for numbers in product(*ranges):
        left = iter(numbers)
        indices = tuple(tuple(islice(left, count)) for count in counts)
        name = "".join(written(level, variable.language == "Fortran") for level in indices)
        shown = variable._replace(name=f"{variable.name}{name}", type=element, size=types.size(element))
        offset = place_of(around, variable.type, 0, indices) if is_fixed else 0
        if not is_fixed:
            yield Element(shown, variable, indices)
        elif isinstance(offset, int):
            yield shown._replace(
                address=None if variable.address is None else variable.address + offset,
                tls_offset=None if variable.tls_offset is None else variable.tls_offset + offset,
            )


def has_own_length(types: TypeTable, variable: Variable) -> bool:
    """Whether each rank has its own number of elements of it."""
    bare = types.strip(bare_array(types, variable.type))
    return levels(types, variable.type) is not None and not (isinstance(bare, Array) and bare.data_location is None)


def with_ends(spans: list[IndexRange], bounds: Bounds) -> list[IndexRange]:
    """Spans with ends in place of open ones, in the variable's own dimensions."""
    closed = [
        IndexRange(
            lowest if chosen.first is None else chosen.first,
            max(highest, lowest) if chosen.last is None else chosen.last,
        )
        for chosen, (lowest, highest) in zip(spans, bounds)
    ]
    return [*closed, *spans[len(closed) :]]


def ranges_of(
    types: TypeTable, variable: Variable, spans: list[IndexRange]
) -> tuple[list[range], list[int], int, bool]:
    """The indices chosen, how many each level takes, the elements' type, and whether all are at fixed places."""
    ranges, counts, element, is_fixed = list[range](), list[int](), variable.type, True
    while len(ranges) < len(spans):
        level = levels(types, element)
        if level is None or level[0] > len(spans) - len(ranges):
            dimensions = len(ranges) + (level[0] if level is not None else 0)
            if not dimensions:
                raise UsageError(f"{variable.name} has no elements by number", "leave the elements out")
            raise UsageError(f"{variable.name} has {dimensions} dimensions", "say which elements of each")
        bare = types.strip(bare_array(types, element))
        here = spans[len(ranges) : len(ranges) + level[0]]
        if isinstance(bare, Array) and bare.data_location is None:
            ranges += [indices_of(variable.name, *pair) for pair in zip(here, bare.dimensions)]
        else:
            lowest = None if isinstance(bare, Array) else 0
            ranges += [named_indices(variable.name, chosen, lowest) for chosen in here]
            is_fixed = False
        counts.append(level[0])
        element = level[1]
    return ranges, counts, element, is_fixed


def named_indices(name: str, chosen: IndexRange, lowest: Optional[int]) -> range:
    """The chosen indices of what has another length on each rank; `lowest`: the first of all, None if that varies."""
    first = lowest if chosen.first is None else chosen.first
    if first is None or chosen.last is None:
        raise UsageError(f"{name} has a length of its own on each rank", "name the first and the last element of each")
    if first > chosen.last or (lowest is not None and first < lowest):
        raise UsageError(f"{name} has no elements {first} to {chosen.last}", "begin with the lower one")
    return range(first, chosen.last + 1)


def indices_of(name: str, chosen: IndexRange, dimension: Dimension) -> range:
    """The chosen indices of a dimension."""
    if not isinstance(dimension.count, int) or not isinstance(dimension.lower, int):
        raise UsageError(f"{name} is of unknown length", "leave the elements out")
    whole = range(dimension.lower, dimension.lower + dimension.count)
    first = whole.start if chosen.first is None else chosen.first
    end = whole.stop if chosen.last is None else chosen.last + 1
    if not whole.start <= first < end <= whole.stop:
        raise UsageError(f"{name} has elements {whole.start} to {whole.stop - 1}", "choose among these")
    return range(first, end)


def written(indices: tuple[int, ...], is_fortran: bool) -> str:
    """Return indices as the language writes them."""
    return f"({','.join(map(str, indices))})" if is_fortran else "".join(f"[{index}]" for index in indices)


def _no_memory(address: int, size: int) -> bytes:
    raise MemoryUnreadable(address, size)
