"""A global variable's value in each rank, as values of Python programs.

Takes a process between two stops and a name; gives the bytes, the text and, of a scalar, the number that each rank has.
The variable is chosen by debug information alone, and read at each rank's own address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Base, Enum, TypeTable, Variable, Variables
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, UsageError
from pieglobalsfind.model import MIGRATED_OUT, Absent, Object, Rank
from pieglobalsfind.ranks.variable_address import data_place, is_shared, place
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.shell.escape import harmless
from pieglobalsfind.target import Target
from pieglobalsfind.targets import in_address_space
from pieglobalsfind.values.address_names import AddressNames
from pieglobalsfind.values.surroundings import Surroundings
from pieglobalsfind.values.surroundings import VariableBytes as Bytes
from pieglobalsfind.values.variable_text import decode

LARGEST = 1 << 30  # bytes of one variable
FLOATS = {4: "<f", 8: "<d"}
INTEGERS = ("signed", "unsigned", "signed_char", "unsigned_char", "boolean")


@dataclass(frozen=True)
class Value:
    """What one rank has in a variable.

    `text` is as GDB's `print` writes it, `number` the value of an integer, an enumeration, a truth value, a float or a
    double, None of anything else. `data` are the bytes in the target's order. `is_shared`: other ranks use the same
    variable.
    """

    rank: int
    name: str
    type: str
    address: int
    data: bytes
    text: str
    number: Union[int, float, None]
    is_shared: bool

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Declared:
    """A variable, its types, and the object that has it."""

    object: Object
    types: TypeTable
    variable: Variable


def values_of(view: ProcessView, name: str, file: str) -> dict[int, Union[Value, Absent]]:
    """The value of the one variable that is meant; raises `UsageError` if it is none, or several."""
    chosen = _only_match(view, name, file)
    if chosen.variable.size > LARGEST:
        raise UsageError(f"{name} has {chosen.variable.size} bytes", "read a part of it by its address")
    names = AddressNames(view.table, view.translator, view.symbolizer)
    ranks = (rank for rank in view.table.ranks if rank.state != MIGRATED_OUT)
    return {rank.rank: _value(view.target, rank, chosen, names) for rank in ranks}


def _only_match(view: ProcessView, name: str, file: str) -> Declared:
    declarations: list[Declared] = []
    missing: list[Absent] = []
    for elf_object in (
        elf_object for elf_object in view.table.objects if elf_object.privatized or elf_object.is_program
    ):
        declared = _declared(view, elf_object)
        if isinstance(declared, Absent):
            missing += [declared] if elf_object.is_program else []
        else:
            declarations += [
                Declared(elf_object, declared.types, variable) for variable in _matching(declared, name, file)
            ]
    different = {
        (declared.object.index, declared.variable.address, declared.variable.tls_offset): declared
        for declared in declarations
    }
    if not different and missing:
        raise RanklensError(missing[0].reason, missing[0].hint)
    where = f" in {file}" if file else ""
    if not different:
        raise UsageError(f"no global variable is called {name!r}{where}", "`inspector globals` lists all")
    if len(different) > 1:
        places = ", ".join(
            f"{harmless(declared.variable.file)}:{declared.variable.line}" for declared in different.values()
        )
        raise UsageError(f"{len(different)} variables are called {name!r}: {places}", "say which one by file=")
    return next(iter(different.values()))


def _declared(view: ProcessView, elf_object: Object) -> Union[Variables, Absent]:
    path = object_path(view.target, identity_of(elf_object))
    return path if isinstance(path, Absent) else variable_cache.declared_or_why(path, elf_object.build_id)


def _matching(declared: Variables, name: str, file: str) -> Iterator[Variable]:
    for variable in declared:
        if variable.size > 0 and name in (variable.name, variable.linkage_name) and _ends_with(variable.file, file):
            yield variable


def _ends_with(path: str, end: str) -> bool:
    """Whether a path's last parts are those of `end`."""
    return not end or path == end or path.endswith(f"/{end}")


def _value(target: Target, rank: Rank, chosen: Declared, names: AddressNames) -> Union[Value, Absent]:
    variable, types = chosen.variable, chosen.types
    address = place(rank, chosen.object, variable)
    if isinstance(address, Absent):
        return address
    memory = in_address_space(target, rank.pages_of)
    if isinstance(memory, Absent):
        return memory
    try:
        data = memory.read(address, variable.size)
    except MemoryUnreadable as error:
        return Absent(error.sentence)
    around = Surroundings(
        types,
        variable.language,
        memory.read,
        partial(names.name, rank.rank),
        own=lambda vaddr: data_place(rank, chosen.object, vaddr + chosen.object.load_bias),
    )
    return Value(
        rank=rank.rank,
        name=variable.name,
        type=type_name(types, variable.type, variable.language),
        address=address,
        data=data,
        text=decode(around, variable.type, Bytes(address, data)),
        number=_number(types, variable.type, data),
        is_shared=is_shared(rank, chosen.object, variable),
    )


def _number(types: TypeTable, index: int, data: bytes) -> Optional[Union[int, float]]:
    """None of what is not one number of at most eight bytes."""
    bare = types.strip(index)
    if isinstance(bare, Enum):
        return int.from_bytes(data, "little", signed=bare.signed)
    if not isinstance(bare, Base):
        return None
    if bare.encoding in INTEGERS:
        return int.from_bytes(data, "little", signed=bare.encoding in ("signed", "signed_char"))
    if bare.encoding == "float" and len(data) in FLOATS:
        value: float = struct.unpack(FLOATS[len(data)], data)[0]
        return value
    return None
