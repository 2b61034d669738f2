"""The values of every global on every rank, grouped: equal on all, or which value on which ranks.

Takes a `Job`; reads each rank's data once. Two pointers count as equal when both name the same place in their own rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pieglobalsfind.dwarf_names import type_name
from pieglobalsfind.dwarf_types import (
    Array,
    MemberPointer,
    Pointer,
    Struct,
    TypeTable,
    Variable,
    Variables,
)
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Object, Rank

from .addresses import AddressNames
from .job import Job, place
from .memory import RankMemory
from .text import harmless
from .values import Object as Bytes
from .values import Surroundings, decode

LARGEST_VARIABLE = 1 << 16  # bytes that are decoded; more would not be shown anyway


@dataclass(frozen=True)
class Group:
    """The ranks, ascending, on which a variable has one value."""

    ranks: tuple[int, ...]
    value: str


@dataclass(frozen=True)
class GlobalValues:
    """A variable and its values; `size` in bytes, `object` the path of the file that declares it."""

    name: str
    object: str
    file: str
    line: int
    type: str
    size: int
    storage: str
    groups: tuple[Group, ...]

    @property
    def differs(self) -> bool:
        return len(self.groups) > 1


@dataclass(frozen=True)
class Globals:
    """All variables of all copied objects; `absent` says which objects could not be looked into."""

    values: tuple[GlobalValues, ...]
    absent: tuple[Absent, ...]


def read_globals(job: Job) -> Globals:
    """Read and group every variable of every copied object that debug information describes."""
    columns, absent = [], []
    for found in job.privatized:
        declared = job.declared(found)
        if isinstance(declared, Variables):
            columns += [Column(found, declared.types, one) for one in declared.variables if one.size > 0]
        elif found.is_program:
            absent.append(declared)
    memory, names = RankMemory(job.target), AddressNames(job)
    for rank in job.present:
        memory.load(rank, job.privatized)
        for column in columns:
            column.add(rank, memory, names)
    return Globals(tuple(one.result() for one in columns), tuple(absent))


class Column:
    """One variable while the ranks are gone through."""

    def __init__(self, found: Object, types: TypeTable, variable: Variable) -> None:
        self._object = found
        self._types = types
        self._variable = variable
        self._size = min(variable.size, LARGEST_VARIABLE)
        self._place_matters = holds_pointers(types, variable.type)
        self._known: dict[bytes, str] = {}  # values by their bytes, where bytes alone decide
        self._ranks: dict[str, list[int]] = {}

    def add(self, rank: Rank, memory: RankMemory, names: AddressNames) -> None:
        self._ranks.setdefault(self._value(rank, memory, names), []).append(rank.rank)

    def _value(self, rank: Rank, memory: RankMemory, names: AddressNames) -> str:
        address = place(rank, self._object, self._variable)
        if isinstance(address, Absent):
            return str(address)
        try:
            data = memory.read(address, self._size)
        except MemoryUnreadable as error:
            return f"<{error}>"
        if not self._place_matters and data in self._known:
            return self._known[data]
        around = Surroundings(self._types, self._variable.language, memory.read, partial(names.name, rank.rank))
        value = self._known[data] = decode(around, self._variable.type, Bytes(address, data))
        return value

    def result(self) -> GlobalValues:
        variable = self._variable
        groups = sorted((Group(tuple(ranks), value) for value, ranks in self._ranks.items()), key=lambda one: one.ranks)
        return GlobalValues(
            name=harmless(variable.name),
            object=harmless(self._object.path),
            file=harmless(variable.file),
            line=variable.line,
            type=harmless(type_name(self._types, variable.type, variable.language)),
            size=variable.size,
            storage=variable.storage,
            groups=tuple(groups),
        )


def holds_pointers(types: TypeTable, index: int) -> bool:
    """Whether equal bytes may mean different things on two ranks."""
    bare = types.strip(index)
    if isinstance(bare, Struct):
        return any(holds_pointers(types, one.type) for one in bare.members)
    if isinstance(bare, Array):
        return bare.data_location is not None or holds_pointers(types, bare.element)
    return isinstance(bare, (Pointer, MemberPointer))


def differing(found: Globals) -> Iterator[GlobalValues]:
    """Those that ranks hold different values of."""
    return (one for one in found.values if one.differs)
