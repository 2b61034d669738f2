"""Elements of arrays as variables of their own: `grid[3]`, `grid[3:10]`, which ends with 9, `field(2:4,1)`, with 4.

Takes what the user wrote and a variable; gives a variable for each element. It reads nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Optional

from pieglobalsfind.dwarf.types import Array, Dimension, TypeTable, Variable
from pieglobalsfind.errors import UsageError

C_FORM = re.compile(r"(?P<name>[^\[\]]+)(?P<parts>(\[\s*-?\d*\s*(:\s*-?\d*\s*)?\])+)$")
FORTRAN_FORM = re.compile(r"(?P<name>[\w:*?]+)\((?P<parts>\s*-?\d*\s*(:\s*-?\d*\s*)?(,\s*-?\d*\s*(:\s*-?\d*\s*)?)*)\)$")
MOST_ELEMENTS = 1000


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
        return Slice(c_form["name"], tuple(span(one, 1) for one in re.findall(r"\[([^\]]*)\]", c_form["parts"])))
    if fortran and any(one.isdigit() for one in fortran["parts"]):
        return Slice(fortran["name"], tuple(span(one, 0) for one in fortran["parts"].split(",")))
    return None


def span(text: str, beyond: int) -> IndexRange:
    """`3`, `3:10`, `:10`, `3:`; `beyond` is what is taken off of an end to have the last one."""
    first, colon, last = (one.strip() for one in text.partition(":"))
    if not colon:
        return IndexRange(int(first), int(first)) if first else IndexRange(None, None)
    return IndexRange(int(first) if first else None, int(last) - beyond if last else None)


def elements(types: TypeTable, variable: Variable, chosen: Slice) -> Iterator[Variable]:
    """The elements of an array; raises `UsageError` if it has none of these, or is not an array of fixed size."""
    bare = types.strip(variable.type)
    if not isinstance(bare, Array) or bare.data_location is not None:
        raise UsageError(f"{variable.name} is not an array of fixed size", "leave the elements out")
    if len(chosen.spans) != len(bare.dimensions):
        raise UsageError(f"{variable.name} has {len(bare.dimensions)} dimensions", "say which elements of each")
    pairs = [indices_of(variable.name, *one) for one in zip(chosen.spans, bare.dimensions)]
    total = math.prod(len(indices) for indices, _ in pairs)
    if total > MOST_ELEMENTS:
        raise UsageError(f"these are {total:,} elements", f"choose at most {MOST_ELEMENTS:,}")
    size = types.size(bare.element)
    for indices in product(*(one for one, _ in pairs)):
        distances = [index - whole.start for index, (_, whole) in zip(indices, pairs)]
        offset = size * place(distances, [len(whole) for _, whole in pairs], bare.column_major)
        yield variable._replace(
            name=f"{variable.name}{written(indices, bare.column_major)}",
            type=bare.element,
            size=size,
            address=None if variable.address is None else variable.address + offset,
            tls_offset=None if variable.tls_offset is None else variable.tls_offset + offset,
        )


def indices_of(name: str, chosen: IndexRange, dimension: Dimension) -> tuple[range, range]:
    """The chosen indices of a dimension, and all of them."""
    if not isinstance(dimension.count, int) or not isinstance(dimension.lower, int):
        raise UsageError(f"{name} is of unknown length", "leave the elements out")
    whole = range(dimension.lower, dimension.lower + dimension.count)
    first = whole.start if chosen.first is None else chosen.first
    end = whole.stop if chosen.last is None else chosen.last + 1
    if not whole.start <= first < end <= whole.stop:
        raise UsageError(f"{name} has elements {whole.start} to {whole.stop - 1}", "choose among these")
    return range(first, end), whole


def place(indices: list[int], counts: list[int], column_major: bool) -> int:
    """How many elements lie before one."""
    order = list(zip(indices, counts))
    number = 0
    for index, count in reversed(order) if column_major else order:
        number = number * count + index
    return number


def written(indices: tuple[int, ...], column_major: bool) -> str:
    """Return indices as the language writes them."""
    return f"({','.join(map(str, indices))})" if column_major else "".join(f"[{index}]" for index in indices)
