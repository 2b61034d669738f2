"""The values of every global on every rank, grouped: equal on all, or which value on which ranks.

Takes a `Job`; reads each rank's data once. Two pointers count as equal when both name the same place in their own rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.names import type_name
from pieglobalsfind.dwarf.types import ROOT, Array, MemberPointer, Pointer, Struct, TypeTable, Variable, Variables
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Absent, Object, Rank, Root
from pieglobalsfind.ranks.variable_address import data_place, is_shared, place
from pieglobalsfind.targets.paused import NOT_COPIED
from pieglobalsfind.values.address_names import AddressNames
from pieglobalsfind.values.containers.contents import MOST_BYTES, MOST_COMPARED, Contents
from pieglobalsfind.values.containers.recognize import BitPlace, holds_containers
from pieglobalsfind.values.containers.unordered import in_memory_order, without_order
from pieglobalsfind.values.elements import bounds_of, place_of
from pieglobalsfind.values.statistics import DISTINCT, Statistics, statistics_of
from pieglobalsfind.values.variable_text import Surroundings, decode, elements_of, marked_text
from pieglobalsfind.values.variable_text import VariableBytes as Bytes

from ..job.job import Job
from ..job.memory import RankMemory
from ..job.pristine import Pristine
from ..terminal.progress import through
from ..terminal.text import DIFFERENCE, harmless
from ..values.equality import ValueDigests, shown_whole
from ..values.layout import WORD, address_offsets
from ..values.runtime_variables import RuntimeVariables
from ..values.slices import Bounds, Element
from ..values.untyped_variables import by_symbols, undescribed

# What the ranks' values say of a variable
DIFFERS = "differs"  # it has to be private
EQUAL = "equal everywhere"  # written, with the same bytes on all ranks
# written, and its pointers lead to the same place of each rank's own image: it has to be private, and what C and C++
# have after them is not compared
ADDRESSED = "equal but for addresses"
NEVER_WRITTEN = "never written"  # still what the file holds, on all ranks
SHARED = "shared"  # there is one for several ranks, whatever they write
UNKNOWN = "unknown"
NOT_DESCRIBED = "variables of the program that its debug information does not describe"
UNREAD = b"unread"  # in place of a digest, which is longer
NOT_NOW = f"<{NOT_COPIED}>", UNREAD
SMALL = 64  # bytes that are their own key
Choose = Callable[[Variables, Callable[[Variable], Bounds]], Iterable[Union[Variable, Element]]]
PIECE = 1 << 20  # bytes of large variables that are compared at once
# Bytes of containers that are compared of all ranks together: a pause copies them
CONTAINER_BYTES, LEAST_BYTES = 64 << 20, 1 << 14
CONTAINER_ELEMENTS, LEAST_ELEMENTS = 2_000_000, 100  # that are compared one by one
BEHIND_POINTERS = "what its pointers lead to"
NOT_STATIC = ("<heap+", "<range+", "<stack+", "<runtime", "0x")  # names of what no variable of static storage is
NO_RANK = -1  # owns no address: what ranks share is the same for all
VERDICTS = (DIFFERS, ADDRESSED, EQUAL, NEVER_WRITTEN, SHARED, UNKNOWN)


@dataclass(frozen=True)
class Group:
    """The ranks, ascending, on which a variable has one value."""

    ranks: tuple[int, ...]
    value: str
    digest: bytes = b""  # of the whole value, where the text leaves something out

    @property
    def is_known(self) -> bool:
        """Whether the value was read; else it is the reason why not."""
        return self.digest != UNREAD


@dataclass(frozen=True)
class GlobalValues:
    """A variable and its values; `size` in bytes, `object` the path of the file that declares it.

    `verdict` is one of VERDICTS. `needless`: bytes that each rank has of its own, though they are the same on all.
    `uncompared`: what of equal values was not compared, "" if all was.
    """

    name: str
    object: str
    file: str
    line: int
    type: str
    size: int
    storage: str
    groups: tuple[Group, ...]
    verdict: str
    needless: int = 0
    place: int = 0  # vaddr, or offset in the TLS block
    uncompared: str = ""

    @property
    def differs(self) -> bool:
        """Return whether ranks have different values."""
        return sum(group.is_known for group in self.groups) > 1

    @property
    def statistics(self) -> Optional[Statistics]:
        """Of a number that has more values than a list is good for, else None."""
        if len(self.groups) <= DISTINCT or not all(group.is_known for group in self.groups):
            return None
        return statistics_of(self.by_rank)

    @property
    def by_rank(self) -> dict[int, str]:
        """Each rank's value, ascending."""
        return dict(sorted((rank, group.value) for group in self.groups for rank in group.ranks))

    @property
    def is_known(self) -> bool:
        """Whether any rank's value was read."""
        return any(group.is_known for group in self.groups)


@dataclass(frozen=True)
class Globals:
    """The variables of all copied objects; `absent` says which objects could not be read.

    `apart`: how many of the runtime's own and the C library's are left out.
    """

    values: tuple[GlobalValues, ...]
    absent: tuple[Absent, ...]
    apart: int = 0

    @property
    def needless(self) -> int:
        """Bytes per rank that need not be private as far as this moment tells: what overlaps counts once."""
        places: dict[tuple[str, int], int] = {}
        for value in self.values:
            places[value.object, value.place] = max(value.needless, places.get((value.object, value.place), 0))
        return sum(places.values())


def read_globals(job: Job, every: bool = False, choose: Optional[Choose] = None) -> Globals:
    """Read and group the variables of every copied object that debug information describes.

    `every`: also the runtime's own and the C library's. `choose` gives the variables to read in place of an object's,
    such as elements of an array.
    """
    columns, absent, apart = [], [], 0
    for elf_object in job.privatized:
        declared = job.declared(elf_object)
        if isinstance(declared, Variables):
            pristine = job.pristine(elf_object)
            wanted = [variable for variable in declared.variables if variable.size > 0]
            if choose is not None:
                bounds = partial(widest_bounds, job, elf_object, declared.types)
                columns += [chosen_row(elf_object, declared.types, one, pristine) for one in choose(declared, bounds)]
                continue
            if not every:
                own = RuntimeVariables(elf_object.path, wanted)
                apart += sum(one in own for one in wanted)
                wanted = [one for one in wanted if one not in own]
            columns += [VariableRow(elf_object, declared.types, one, pristine) for one in wanted]
            for bare in beside(job, elf_object, declared) if elf_object.is_program else ():
                columns += [VariableRow(elf_object, bare.types, one, pristine) for one in bare]
                absent.append(Absent(f"{NOT_DESCRIBED}: {len(bare.variables)}, shown as bytes", "compile all with -g"))
        elif elf_object.is_program:
            absent.append(declared)
            columns += [
                VariableRow(elf_object, bare.types, one, job.pristine(elf_object))
                for bare in untyped(job, elf_object)
                for one in bare
            ]
    for elf_object, known in roots(job):
        if isinstance(known, Variables):
            columns += [VariableRow(elf_object, known.types, variable, None) for variable in known.variables]
        else:
            absent.append(known)
    share_bytes([column for column in columns if column.holds_containers], len(job.present))
    memory, names = RankMemory(job.target), AddressNames(job.table, job.translator, job.symbolizer)
    for rank in through(job.present, "globals"):
        memory.load(rank, job.privatized)
        for column in columns:
            column.add(rank, memory, names)
    return Globals(tuple(column.result(memory) for column in columns), tuple(absent), apart)


def widest_bounds(job: Job, elf_object: Object, types: TypeTable, variable: Variable) -> Bounds:
    """The lowest and the highest index, by dimension, that any rank has of an array or container; () if none can be."""
    memory, found = RankMemory(job.target), list[list[tuple[int, int]]]()
    for rank in job.present:
        memory.load(rank, (elf_object,))
        address = place(rank, elf_object, variable)
        if not isinstance(address, Absent):
            bounds = bounds_of(Surroundings(types, variable.language, memory.follow, hex), variable.type, address)
            found += [] if isinstance(bounds, Absent) else [bounds]
    return tuple((min(low for low, _ in each), max(high for _, high in each)) for each in zip(*found))


def share_bytes(columns: Sequence[VariableRow], ranks: int) -> None:
    """How much of each variable's containers is compared: less of each where there are many."""
    for column in columns:
        parts = max(ranks, 1) * len(columns)
        column.most_bytes = min(max(CONTAINER_BYTES // parts, LEAST_BYTES), MOST_BYTES)
        column.most_elements = min(max(CONTAINER_ELEMENTS // parts, LEAST_ELEMENTS), MOST_COMPARED)


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
    told = dict.fromkeys((part.object, part.type_name) for part in parts if isinstance(part, Root))
    for index, name in told:
        yield job.table.objects[index], job.root(job.table.objects[index], name)


class SharingEvidence:
    """What is noted of one variable, rank by rank, for its verdict."""

    def __init__(
        self, elf_object: Object, variable: Variable, pristine: Optional[Pristine], pointers: Sequence[int]
    ) -> None:
        """`pointers` are the offsets of all that the variable holds, or may hold."""
        self._object = elf_object
        self._variable = variable
        self._pristine = pristine
        self._first: Optional[bytes] = None
        self._last: Optional[bytes] = None  # that was held against the file
        self._relocated = pristine is not None and pristine.is_relocated(variable)
        self._same_bytes = True
        self._pointers = pointers
        self._words: Optional[list[bytes]] = None  # the first rank's pointers
        self._addressed = False
        self._unwritten: Optional[bool] = True
        self._shared = False
        self._roots: set[tuple[int, int]] = set()  # where ranks have their structs of globals
        self._ranks = 0

    def add(self, rank: Rank, address: int, read: Callable[[], memoryview], key: bytes) -> None:
        """`key` is the data that `read` gives, or its digest: equal for equal data."""
        self._ranks += 1
        self._first = key if self._first is None else self._first
        self._same_bytes = self._same_bytes and key == self._first
        if self._pointers and not self._addressed:
            data = read()
            words = [bytes(data[at : at + WORD]) for at in self._pointers]
            self._words = self._words or words
            self._addressed = words != self._words
        self._shared = self._shared or is_shared(rank, self._object, self._variable)
        if self._variable.storage == ROOT:
            self._shared = self._shared or (rank.pages_of, address) in self._roots
            self._roots.add((rank.pages_of, address))
        if self._unwritten and (key != self._last or self._relocated):
            base = data_place(rank, self._object, self._object.base)
            bias = base - self._object.base + self._object.load_bias if isinstance(base, int) else 0
            pristine = self._pristine
            self._unwritten = None if pristine is None else pristine.is_unwritten(self._variable, read(), bias)
            self._last = key

    def verdict(self, groups: int, is_whole: bool) -> str:
        """`groups`: how many values are known; `is_whole`: every rank's is."""
        if not self._ranks:
            return UNKNOWN
        if self._shared:
            return SHARED
        if self._unwritten and is_whole:
            return NEVER_WRITTEN
        if groups > 1 or not is_whole:
            return DIFFERS if groups > 1 else UNKNOWN
        return ADDRESSED if self._addressed else EQUAL

    @property
    def needless(self) -> int:
        """Equal bytes that every rank has of its own. One rank alone tells nothing."""
        vaddr = self._variable.address
        offset = None if vaddr is None else vaddr + self._object.load_bias - self._object.base
        writable = (segment for segment in self._object.segments if segment.writable)
        private = not self._shared and (offset is None or any(one.offset <= offset < one.end for one in writable))
        return self._variable.size if self._ranks > 1 and self._same_bytes and private else 0


class VariableRow:
    """One variable while the ranks are gone through."""

    def __init__(self, elf_object: Object, types: TypeTable, variable: Variable, pristine: Optional[Pristine]) -> None:
        self._object = elf_object
        self._types = types
        self._variable = variable
        self._place_matters = holds_pointers(types, variable.type)
        self.holds_containers = variable.language == "C++" and holds_containers(types, variable.type)
        self.most_bytes = MOST_BYTES
        self.most_elements = MOST_COMPARED
        self._is_shown_whole = shown_whole(types, variable.type)
        self._meaning = None if self._is_shown_whole or self.holds_containers else ValueDigests(types, variable.type)
        self._uncompared = ""
        self._known: dict[bytes, str] = {}  # values by their bytes, where bytes alone decide
        self._orders: dict[str, str] = {}  # texts as the first rank has them, by what they mean
        self._texts: dict[tuple[int, bytes], str] = {}  # of elements
        self._shared: dict[int, tuple[str, bytes]] = {}  # values by their addresses, of what is one for several ranks
        self._ranks: dict[tuple[str, bytes], list[Rank]] = {}
        pointers = address_offsets(types, variable.type) if self._place_matters else []
        self._evidence = SharingEvidence(elf_object, variable, pristine, pointers)

    def add(self, rank: Rank, memory: RankMemory, names: AddressNames) -> None:
        """Add a rank's value."""
        self._ranks.setdefault(self._value(rank, memory, names), []).append(rank)

    def _value(self, rank: Rank, memory: RankMemory, names: AddressNames) -> tuple[str, bytes]:
        """The text, and a digest where the text may leave something out."""
        memory.is_torn = False
        address = self._address(rank, memory)
        if isinstance(address, Absent):
            return NOT_NOW if memory.is_torn else (str(address), UNREAD)
        try:
            key = self._key(address, memory)
            if memory.is_torn:
                return NOT_NOW
            self._evidence.add(rank, address, partial(self._data, address, memory), key)
            if not self._place_matters and key in self._known:
                return self._known[key], b"" if self._meaning is None else key
            data = self._data(address, memory)
        except MemoryUnreadable as error:
            return f"<can't be read, {error.why}>", UNREAD
        if not self._place_matters or not is_shared(rank, self._object, self._variable):
            return self._decoded(rank, address, data, key, memory, partial(names.name, rank.rank))
        if address not in self._shared:
            self._shared[address] = self._decoded(rank, address, data, key, memory, partial(names.name, NO_RANK))
        return self._shared[address]

    def _decoded(
        self, rank: Rank, address: int, data: memoryview, key: bytes, memory: RankMemory, name: Callable[[int], str]
    ) -> tuple[str, bytes]:
        whole = Bytes(address, bytes_of(data))
        if self.holds_containers:
            return self._contained(whole, memory, name)
        contents = Contents(self.most_bytes)
        around = Surroundings(
            self._types,
            self._variable.language,
            memory.read,
            partial(self._named, name),
            contents,
            leads_away,
            own=partial(self._own, rank),
        )
        text = decode(around, self._variable.type, whole)
        self._uncompared = self._uncompared or contents.lacking
        if not self._place_matters:
            self._known[key] = text
            return text, b"" if self._meaning is None else key
        if self._meaning is None:
            return text, contents.digest
        return text, self._meaning.digest(rank, elements_of(around, self._variable.type, whole)) + contents.digest

    def _own(self, rank: Rank, vaddr: int) -> Union[int, Absent]:
        return data_place(rank, self._object, vaddr + self._object.load_bias)

    def _named(self, name: Callable[[int], str], address: int) -> str:
        """Note that a pointer leads to what is not a variable: that is not compared."""
        text = name(address)
        if text.startswith(NOT_STATIC):
            self._uncompared = self._uncompared or BEHIND_POINTERS
        return text

    def _contained(self, whole: Bytes, memory: RankMemory, name: Callable[[int], str]) -> tuple[str, bytes]:
        """What containers hold, wherever that is; where a pause did not copy it, it is for the next one."""
        contents = Contents(self.most_bytes, self.most_elements)
        if not self._is_shown_whole:
            contents.lacking = "it is too large"
        around = Surroundings(
            self._types,
            self._variable.language,
            memory.follow,
            partial(self._named, name),
            contents,
            texts=self._texts,
            is_futile=lambda: memory.is_torn,
        )
        marked = marked_text(around, self._variable.type, whole)
        if memory.is_torn:
            return NOT_NOW
        self._uncompared = self._uncompared or contents.lacking
        meaning = without_order(marked)
        if meaning not in self._orders:
            self._orders[meaning] = in_memory_order(marked)
        return meaning, contents.digest

    def result(self, memory: RankMemory) -> GlobalValues:
        """Return the values by group, with the verdict."""
        variable = self._variable
        groups = tuple(sorted(self._groups(memory), key=lambda one: one.ranks))
        is_whole = all(group.is_known for group in groups)
        return GlobalValues(
            name=harmless(variable.name),
            object=harmless(self._object.path),
            file=harmless(variable.file),
            line=variable.line,
            type=harmless(type_name(self._types, variable.type, variable.language)),
            size=variable.size,
            storage=variable.storage,
            groups=groups,
            verdict=self._evidence.verdict(sum(group.is_known for group in groups), is_whole),
            needless=self._evidence.needless if is_whole else 0,
            place=variable.address or variable.tls_offset or 0,
            uncompared=self._uncompared if len(groups) == 1 else "",
        )

    def _groups(self, memory: RankMemory) -> Iterator[Group]:
        """A group per value; of values that look the same each but the first says where it differs from that."""
        alike: dict[str, list[tuple[bytes, list[Rank]]]] = {}
        for (meaning, digest), ranks in self._ranks.items():
            alike.setdefault(self._orders.get(meaning, meaning), []).append((digest, ranks))
        for text, ((whole, first), *others) in alike.items():
            same = list(first)
            for digest, ranks in others:
                where = self._difference(first[0], ranks[0], memory)
                if where is None:
                    same += ranks
                else:
                    note = f"{text}{DIFFERENCE}{first[0].rank} at {harmless(_variable_path(where))})"
                    yield Group(tuple(rank.rank for rank in ranks), note, digest)
            yield Group(tuple(sorted(one.rank for one in same)), text, whole)

    def _difference(self, one: Rank, other: Rank, memory: RankMemory) -> Optional[str]:
        if self._meaning is None or self._is_described():
            return ""
        size = self._variable.size
        step = size if self._place_matters else PIECE  # mostly the first piece tells
        try:
            for start in range(0, size, step):
                part = min(step, size - start)
                left, right = (self._part(rank, start, part, memory) for rank in (one, other))
                where = self._meaning.first_difference(one, left, other, right, start)
                if where is not None:
                    return where
        except MemoryUnreadable:
            return ""
        return None

    def _part(self, rank: Rank, start: int, size: int, memory: RankMemory) -> bytes:
        address = self._address(rank, memory)
        return memory.read(address + start, size) if isinstance(address, int) else b""

    def _address(self, rank: Rank, memory: RankMemory) -> Union[int, Absent]:
        """Where the rank has it."""
        return place(rank, self._object, self._variable)

    def _data(self, address: int, memory: RankMemory) -> memoryview:
        return memory.view(address, self._variable.size)

    def _key(self, address: int, memory: RankMemory) -> bytes:
        """What is equal for equal bytes alone: these, or their digest."""
        size = self._variable.size
        return bytes(self._data(address, memory)) if size <= SMALL else memory.digest(address, size)

    def _is_described(self) -> bool:
        bare = self._types.strip(self._variable.type)
        return isinstance(bare, Array) and bare.data_location is not None


class ElementRow(VariableRow):
    """One element of what each rank has elsewhere: a container's, or an allocatable array's."""

    def __init__(self, elf_object: Object, types: TypeTable, element: Element) -> None:
        super().__init__(elf_object, types, element.shown, None)
        self._element = element

    def _address(self, rank: Rank, memory: RankMemory) -> Union[int, Absent]:
        whole = self._element.whole
        address = place(rank, self._object, whole)
        around = Surroundings(self._types, whole.language, memory.follow, hex)
        return address if isinstance(address, Absent) else place_of(around, whole.type, address, self._element.indices)

    def _data(self, address: int, memory: RankMemory) -> memoryview:
        if isinstance(address, BitPlace):
            return memoryview(bytes([memory.follow(address, 1)[0] >> address.bit & 1]))
        return memoryview(memory.follow(address, self._variable.size))

    def _key(self, address: int, memory: RankMemory) -> bytes:
        data = self._data(address, memory)
        return bytes(data) if len(data) <= SMALL else hashlib.sha256(data).digest()

    def result(self, memory: RankMemory) -> GlobalValues:
        """Return the values by group; what lies on a heap is no part of a file that could be shared."""
        return replace(super().result(memory), needless=0)


def chosen_row(
    elf_object: Object, types: TypeTable, chosen: Union[Variable, Element], pristine: Optional[Pristine]
) -> VariableRow:
    """Return the row of a variable or of an element."""
    if isinstance(chosen, Element):
        return ElementRow(elf_object, types, chosen)
    return VariableRow(elf_object, types, chosen, pristine)


def bytes_of(data: memoryview) -> bytes:
    """What a view is of, without a copy where that is all of some bytes: variables may be large."""
    return data.obj if isinstance(data.obj, bytes) and len(data.obj) == len(data) else bytes(data)


def leads_away(name: str) -> bool:
    """Whether a pointer of this name leads to what is not a variable, and not to what is not mapped."""
    return name.startswith(NOT_STATIC) and not name.startswith("0x")


def _variable_path(path: str) -> str:
    return path or "an element that is not shown"


def holds_pointers(types: TypeTable, index: int) -> bool:
    """Whether equal bytes may mean different things on two ranks."""
    bare = types.strip(index)
    if isinstance(bare, Struct):
        return bare.opaque or any(holds_pointers(types, member.type) for member in bare.members)
    if isinstance(bare, Array):
        return bare.data_location is not None or holds_pointers(types, bare.element)
    return isinstance(bare, (Pointer, MemberPointer))


def differing(found: Globals) -> Iterator[GlobalValues]:
    """Those that ranks hold different values of."""
    return (value for value in found.values if value.differs)
