"""The values of every global on every rank, grouped: equal on all, or which value on which ranks.

Takes a `Job`; reads each rank's data once. Two pointers count as equal when both name the same place in their own rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Optional, Union

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
from pieglobalsfind.model import Absent, Object, Rank, Root
from pieglobalsfind.place import place

from .addresses import AddressNames
from .job import Job
from .memory import RankMemory
from .sameness import Meaning, shown_whole
from .text import harmless
from .values import Object as Bytes
from .values import Surroundings, decode, elements_of


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
    for found, known in roots(job):
        if isinstance(known, Variables):
            columns += [Column(found, known.types, one) for one in known.variables]
        else:
            absent.append(known)
    memory, names = RankMemory(job.target), AddressNames(job)
    for rank in job.present:
        memory.load(rank, job.privatized)
        for column in columns:
            column.add(rank, memory, names)
    return Globals(tuple(one.result(memory) for one in columns), tuple(absent))


def roots(job: Job) -> Iterator[tuple[Object, Union[Variables, Absent]]]:
    """The structs in which the program itself keeps its globals, each type once."""
    parts = (one for rank in job.present for one in rank.placements)
    told = dict.fromkeys((one.object, one.type_name) for one in parts if isinstance(one, Root))
    for index, name in told:
        yield job.table.objects[index], job.root(job.table.objects[index], name)


class Column:
    """One variable while the ranks are gone through."""

    def __init__(self, found: Object, types: TypeTable, variable: Variable) -> None:
        self._object = found
        self._types = types
        self._variable = variable
        self._place_matters = holds_pointers(types, variable.type)
        self._meaning = None if shown_whole(types, variable.type) else Meaning(types, variable.type)
        self._known: dict[bytes, str] = {}  # values by their bytes, where bytes alone decide
        self._ranks: dict[tuple[str, bytes], list[Rank]] = {}

    def add(self, rank: Rank, memory: RankMemory, names: AddressNames) -> None:
        self._ranks.setdefault(self._value(rank, memory, names), []).append(rank)

    def _value(self, rank: Rank, memory: RankMemory, names: AddressNames) -> tuple[str, bytes]:
        """The text, and a digest where the text may leave something out."""
        address = place(rank, self._object, self._variable)
        if isinstance(address, Absent):
            return str(address), b""
        try:
            data = memory.read(address, self._variable.size)
        except MemoryUnreadable as error:
            return f"<{error}>", b""
        around = Surroundings(self._types, self._variable.language, memory.read, partial(names.name, rank.rank))
        text = self._text(around, address, data)
        if self._meaning is None:
            return text, b""
        return text, self._meaning.digest(rank, elements_of(around, self._variable.type, Bytes(address, data)))

    def _text(self, around: Surroundings, address: int, data: bytes) -> str:
        if self._place_matters:
            return decode(around, self._variable.type, Bytes(address, data))
        key = data if len(data) <= 64 else hashlib.blake2b(data, digest_size=16).digest()
        if key not in self._known:
            self._known[key] = decode(around, self._variable.type, Bytes(address, data))
        return self._known[key]

    def result(self, memory: RankMemory) -> GlobalValues:
        variable = self._variable
        return GlobalValues(
            name=harmless(variable.name),
            object=harmless(self._object.path),
            file=harmless(variable.file),
            line=variable.line,
            type=harmless(type_name(self._types, variable.type, variable.language)),
            size=variable.size,
            storage=variable.storage,
            groups=tuple(sorted(self._groups(memory), key=lambda one: one.ranks)),
        )

    def _groups(self, memory: RankMemory) -> Iterator[Group]:
        """A group per value; of values that look the same each but the first says where it differs from that."""
        alike: dict[str, list[list[Rank]]] = {}
        for (text, _), ranks in self._ranks.items():
            alike.setdefault(text, []).append(ranks)
        for text, (first, *others) in alike.items():
            same = list(first)
            for ranks in others:
                where = self._difference(first[0], ranks[0], memory)
                if where is None:
                    same += ranks
                else:
                    note = f"{text} (differs from rank {first[0].rank} at {harmless(variable_path(where))})"
                    yield Group(tuple(one.rank for one in ranks), note)
            yield Group(tuple(sorted(one.rank for one in same)), text)

    def _difference(self, one: Rank, other: Rank, memory: RankMemory) -> Optional[str]:
        if self._meaning is None or self._is_described():
            return ""
        try:
            data = [memory.read(self._address(rank), self._variable.size) for rank in (one, other)]
        except MemoryUnreadable:
            return ""
        return self._meaning.first_difference(one, data[0], other, data[1])

    def _address(self, rank: Rank) -> int:
        address = place(rank, self._object, self._variable)
        return address if isinstance(address, int) else 0

    def _is_described(self) -> bool:
        bare = self._types.strip(self._variable.type)
        return isinstance(bare, Array) and bare.data_location is not None


def variable_path(path: str) -> str:
    return path or "an element that is not shown"


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
