"""Which globals of which ranks hold a value: the work of `rank find`.

Takes the words of the command; looks into every variable that can hold the value, by its type in the debug information.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Optional, Union

from pieglobalsfind.debugger.declare import Block, Debugger, Finding, TextBlock
from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.types import Array, Base, Enum, Pointer, Struct, TypeTable, Variable, Variables
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, UsageError
from pieglobalsfind.model import Absent, Object
from pieglobalsfind.ranks import rankset
from pieglobalsfind.ranks.variable_address import place
from pieglobalsfind.session.job_view import JobView, counterpart
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets import in_address_space

MOST_ROWS = 200
LARGEST = 64 << 20  # bytes of one variable that are read
FLOATS = {4: "<f", 8: "<d"}
INTEGERS = ("address", "boolean", "signed", "signed_char", "unsigned", "unsigned_char", "UTF")
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


@dataclass(frozen=True)
class WantedValue:
    """A value as users write it: an integer is also looked for in floating-point variables."""

    number: Union[int, float]

    def pattern(self, scalar: Scalar) -> Optional[bytes]:
        """The bytes that a scalar of this type has if it holds the value; None if it can't hold it."""
        if isinstance(scalar, Base) and scalar.encoding == "float":
            form = FLOATS.get(scalar.size)
            return struct.pack(form, self.number) if form and self._fits(form) else None
        if isinstance(self.number, float) or (isinstance(scalar, Base) and scalar.encoding not in INTEGERS):
            return None
        return self._integer(scalar.size)

    def _fits(self, form: str) -> bool:
        try:
            return math.isfinite(struct.unpack(form, struct.pack(form, self.number))[0])
        except (OverflowError, struct.error):
            return False

    def _integer(self, size: int) -> Optional[bytes]:
        bits = 8 * size
        if isinstance(self.number, float) or not -(1 << (bits - 1)) <= self.number < 1 << bits:
            return None
        return (self.number % (1 << bits)).to_bytes(size, "little")


def search(debugger: Debugger, text: str) -> Iterator[Block]:
    """What `rank find` answers."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise UsageError("`rank find` takes a value and perhaps a set of ranks", "for instance: rank find 42 0-3")
    sought, job = WantedValue(number_of(words[0])), debugger.job()
    chosen = rankset.parse(words[1]) if words[1:] else rankset.ALL
    numbers = job.select(chosen, debugger.location)
    shown = 0
    moment = job.processes[0].moment
    for elf_object in (elf_object for elf_object in moment.table.objects if elf_object.privatized):
        declared = _declared_by(moment, elf_object)
        if isinstance(declared, Absent):
            if elf_object.is_program:
                yield Finding(f"{elf_object.path} was not read, {declared.reason}", declared.hint)
            continue
        for line in lines(job, elf_object, declared, sought, numbers):
            shown += 1
            if shown <= MOST_ROWS:
                yield TextBlock(line)
    if shown > MOST_ROWS:
        yield TextBlock(f"... {shown - MOST_ROWS} more")
    elif not shown:
        yield TextBlock(f"No global of {rankset.compact(numbers) or 'any rank'} holds {words[0]}")


def number_of(word: str) -> Union[int, float]:
    """Return a word as a number, not a number if it is none."""
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        raise UsageError(
            f"{word!r} is not a number", "rank find 42, rank find -1, rank find 0x2a, rank find 1.5"
        ) from None


def _declared_by(moment: ProcessView, elf_object: Object) -> Union[Variables, Absent]:
    path = object_path(moment.target, identity_of(elf_object))
    if isinstance(path, Absent):
        return path
    try:
        return variable_cache.declared(path, elf_object.build_id)
    except ObjectFileError as error:
        return Absent(error.sentence, error.hint)


def lines(
    job: JobView, elf_object: Object, declared: Variables, sought: WantedValue, numbers: tuple[int, ...]
) -> Iterator[str]:
    """`place[1] (solver.c:27): 2-3,6-7`, one per scalar that holds the value somewhere."""
    for variable in declared:
        if not 0 < variable.size <= LARGEST:
            continue
        contents = {number: content(job.of(number), elf_object, variable, number) for number in numbers}
        wanted = [(part, sought.pattern(part.type)) for part in parts(declared.types, variable.type)]
        for part, pattern in wanted:
            if pattern is None:
                continue
            end = part.offset + len(pattern)
            holders = [number for number, data in contents.items() if data[part.offset : end] == pattern]
            if holders:
                file = variable.file.rpartition("/")[2]
                yield f"{variable.name}{part.path} ({file}:{variable.line}): {rankset.compact(holders)}"


def content(moment: ProcessView, elf_object: Object, variable: Variable, number: int) -> bytes:
    """The variable's bytes on a rank; none if they can't be had."""
    rank, found_there = moment.rank(number), counterpart(moment, elf_object)
    if found_there is None:
        return b""
    address, space = place(rank, found_there, variable), in_address_space(moment.target, rank.pages_of)
    if isinstance(address, Absent) or isinstance(space, Absent):
        return b""
    try:
        return space.read(address, variable.size)
    except MemoryUnreadable:
        return b""
