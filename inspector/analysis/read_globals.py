"""The values of every global on every rank, grouped: equal on all, or which value on which ranks.

Takes a `Job`; reads each rank's data once. Two pointers count as equal when both name the same place in their own rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.types import TypeTable, Variable, Variables
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent, Object, Root
from pieglobalsfind.ranks.variable_address import place
from pieglobalsfind.values.address_names import AddressNames
from pieglobalsfind.values.containers.bounded_contents import MOST_BYTES, MOST_COMPARED
from pieglobalsfind.values.element_address import bounds_of
from pieglobalsfind.values.surroundings import Surroundings

from ..job.job import Job
from ..job.rank_data import RankData
from ..terminal.progress import through
from ..values.runtime_variables import RuntimeVariables
from ..values.slices import Bounds, Element
from ..values.untyped_variables import by_symbols, undescribed
from .global_values import Globals
from .variable_groups import VariableRow, chosen_row

NOT_DESCRIBED = "variables of the program that its debug information does not describe"
Choose = Callable[[Variables, Callable[[Variable], Bounds]], Iterable[Union[Variable, Element]]]
# Bytes of containers that are compared of all ranks together: a pause copies them
CONTAINER_BYTES, LEAST_BYTES = 64 << 20, 1 << 14
CONTAINER_ELEMENTS, LEAST_ELEMENTS = 2_000_000, 100  # that are compared one by one


def read_globals(job: Job, every: bool = False, choose: Optional[Choose] = None) -> Globals:
    """Read and group the variables of every copied object that debug information describes.

    `every`: also the runtime's own and the C library's. `choose` gives the variables to read in place of an object's,
    such as elements of an array.
    """
    objects = [object_rows(job, elf_object, every, choose) for elf_object in job.privatized]
    objects += [root_rows(*root) for root in roots(job)]
    rows = [row for part in objects for row in part.rows]
    share_bytes([row for row in rows if row.holds_containers], len(job.present))
    memory, names = RankData(job.target), AddressNames(job.table, job.translator, job.symbolizer)
    for rank in through(job.present, "globals"):
        memory.load(rank, job.privatized)
        for row in rows:
            row.add(rank, memory, names)
    absent = tuple(reason for part in objects for reason in part.absent)
    return Globals(tuple(row.result(memory) for row in rows), absent, sum(part.apart for part in objects))


@dataclass(frozen=True)
class ObjectRows:
    """The variables of one object that are read, what is not known of it, and how many are left out."""

    rows: Sequence[VariableRow] = ()
    absent: Sequence[Absent] = ()
    apart: int = 0


def object_rows(job: Job, elf_object: Object, every: bool, choose: Optional[Choose]) -> ObjectRows:
    """Those of a copied object, before any rank's value is read."""
    declared = job.declared(elf_object)
    if not isinstance(declared, Variables):
        if not elf_object.is_program:
            return ObjectRows()
        return ObjectRows(rows_of(job, elf_object, untyped(job, elf_object)), (declared,))
    pristine, types = job.pristine(elf_object), declared.types
    if choose is not None:
        bounds = partial(widest_bounds, job, elf_object, types)
        return ObjectRows([chosen_row(elf_object, types, variable, pristine) for variable in choose(declared, bounds)])
    described = [variable for variable in declared.variables if variable.size > 0]
    own = () if every else RuntimeVariables(elf_object.path, described)
    rows = [VariableRow(elf_object, types, variable, pristine) for variable in described if variable not in own]
    bare = tuple(beside(job, elf_object, declared)) if elf_object.is_program else ()
    absent = [
        Absent(f"{NOT_DESCRIBED}: {len(variables.variables)}, shown as bytes", "compile all with -g")
        for variables in bare
    ]
    return ObjectRows([*rows, *rows_of(job, elf_object, bare)], absent, len(described) - len(rows))


def rows_of(job: Job, elf_object: Object, several: Iterable[Variables]) -> list[VariableRow]:
    """A row for each variable."""
    pristine = job.pristine(elf_object)
    return [
        VariableRow(elf_object, variables.types, variable, pristine) for variables in several for variable in variables
    ]


def root_rows(elf_object: Object, declared: Union[Variables, Absent]) -> ObjectRows:
    """The members of a struct in which the program itself keeps its globals."""
    if isinstance(declared, Absent):
        return ObjectRows(absent=(declared,))
    return ObjectRows([VariableRow(elf_object, declared.types, variable, None) for variable in declared.variables])


def widest_bounds(job: Job, elf_object: Object, types: TypeTable, variable: Variable) -> Bounds:
    """The lowest and the highest index, by dimension, that any rank has of an array or container; () if none can be."""
    memory, bounds_of_each = RankData(job.target), list[list[tuple[int, int]]]()
    for rank in job.present:
        memory.load(rank, (elf_object,))
        address = place(rank, elf_object, variable)
        if not isinstance(address, Absent):
            bounds = bounds_of(Surroundings(types, variable.language, memory.follow, hex), variable.type, address)
            bounds_of_each += [] if isinstance(bounds, Absent) else [bounds]
    return tuple((min(low for low, _ in each), max(high for _, high in each)) for each in zip(*bounds_of_each))


def share_bytes(rows: Sequence[VariableRow], ranks: int) -> None:
    """How much of each variable's containers is compared: less of each where there are many."""
    for row in rows:
        parts = max(ranks, 1) * len(rows)
        row.most_bytes = min(max(CONTAINER_BYTES // parts, LEAST_BYTES), MOST_BYTES)
        row.most_elements = min(max(CONTAINER_ELEMENTS // parts, LEAST_ELEMENTS), MOST_COMPARED)


def untyped(job: Job, program: Object) -> Iterator[Variables]:
    """What symbols say of a program without debug information, if its file is there."""
    path = job.file(program)
    if not isinstance(path, Absent):
        with suppress(ObjectFileError):
            yield by_symbols(path)


def beside(job: Job, program: Object, declared: Variables) -> Iterator[Variables]:
    """What symbols say of variables that the program's debug information lacks, if there are any."""
    path = job.file(program)
    if not isinstance(path, Absent):
        with suppress(ObjectFileError):
            variables = undescribed(path, declared)
            if variables.variables:
                yield variables


def roots(job: Job) -> Iterator[tuple[Object, Union[Variables, Absent]]]:
    """The structs in which the program itself keeps its globals, each type once."""
    parts = (placement for rank in job.present for placement in rank.placements)
    structs = dict.fromkeys((part.object, part.type_name) for part in parts if isinstance(part, Root))
    for index, name in structs:
        yield job.table.objects[index], job.root(job.table.objects[index], name)
