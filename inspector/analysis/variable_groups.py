"""One variable of all ranks: reads each rank's value, and groups the ranks by it.

Two pointers count as equal when both name the same place in their own rank. Containers are compared by what they hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Array, MemberPointer, Pointer, Struct, TypeTable, Variable
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Object, Rank
from pieglobalsfind.ranks.variable_address import data_place, is_shared, place
from pieglobalsfind.targets.paused import NOT_COPIED
from pieglobalsfind.values.address_names import AddressNames
from pieglobalsfind.values.array_extents import elements_of
from pieglobalsfind.values.containers.bounded_contents import MOST_BYTES, MOST_COMPARED, Contents
from pieglobalsfind.values.containers.order_free_text import in_memory_order, without_order
from pieglobalsfind.values.containers.recognize import BitPlace, holds_containers
from pieglobalsfind.values.element_address import place_of
from pieglobalsfind.values.surroundings import Surroundings
from pieglobalsfind.values.surroundings import VariableBytes as Bytes
from pieglobalsfind.values.variable_text import decode, marked_text

from ..job.pristine import Pristine
from ..job.rank_data import RankData
from ..terminal.text import DIFFERENCE, harmless
from ..values.equality import ValueDigests, shown_whole
from ..values.layout import address_offsets
from ..values.slices import Element
from .global_values import UNREAD, GlobalValues, Group
from .privatization_need import SharingEvidence

NOT_NOW = f"<{NOT_COPIED}>", UNREAD
SMALL = 64  # bytes that are their own key
PIECE = 1 << 20  # bytes of large variables that are compared at once
BEHIND_POINTERS = "what its pointers lead to"
NOT_STATIC = ("<heap+", "<range+", "<stack+", "<runtime", "0x")  # names of what no variable of static storage is
NO_RANK = -1  # owns no address: what ranks share is the same for all


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
        self._shown: dict[bytes, str] = {}  # values by their bytes, where bytes alone decide
        self._orders: dict[str, str] = {}  # texts as the first rank has them, by what they mean
        self._texts: dict[tuple[int, bytes], str] = {}  # of elements
        self._shared: dict[int, tuple[str, bytes]] = {}  # values by their addresses, of what is one for several ranks
        self._ranks: dict[tuple[str, bytes], list[Rank]] = {}
        pointers = address_offsets(types, variable.type) if self._place_matters else []
        self._evidence = SharingEvidence(elf_object, variable, pristine, pointers)

    def add(self, rank: Rank, memory: RankData, names: AddressNames) -> None:
        """Add a rank's value."""
        self._ranks.setdefault(self._value(rank, memory, names), []).append(rank)

    def _value(self, rank: Rank, memory: RankData, names: AddressNames) -> tuple[str, bytes]:
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
            if not self._place_matters and key in self._shown:
                return self._shown[key], b"" if self._meaning is None else key
            data = self._data(address, memory)
        except MemoryUnreadable as error:
            return f"<can't be read, {error.why}>", UNREAD
        if not self._place_matters or not is_shared(rank, self._object, self._variable):
            return self._decoded(rank, address, data, key, memory, partial(names.name, rank.rank))
        if address not in self._shared:
            self._shared[address] = self._decoded(rank, address, data, key, memory, partial(names.name, NO_RANK))
        return self._shared[address]

    def _decoded(
        self, rank: Rank, address: int, data: memoryview, key: bytes, memory: RankData, name: Callable[[int], str]
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
            self._shown[key] = text
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

    def _contained(self, whole: Bytes, memory: RankData, name: Callable[[int], str]) -> tuple[str, bytes]:
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

    def result(self, memory: RankData) -> GlobalValues:
        """Return the values by group, with the verdict."""
        variable = self._variable
        groups = tuple(sorted(self._groups(memory), key=lambda group: group.ranks))
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

    def _groups(self, memory: RankData) -> Iterator[Group]:
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
            yield Group(tuple(sorted(rank.rank for rank in same)), text, whole)

    def _difference(self, first: Rank, other: Rank, memory: RankData) -> Optional[str]:
        if self._meaning is None or self._is_described():
            return ""
        size = self._variable.size
        step = size if self._place_matters else PIECE  # mostly the first piece tells
        try:
            for start in range(0, size, step):
                part = min(step, size - start)
                left, right = (self._part(rank, start, part, memory) for rank in (first, other))
                where = self._meaning.first_difference(first, left, other, right, start)
                if where is not None:
                    return where
        except MemoryUnreadable:
            return ""
        return None

    def _part(self, rank: Rank, start: int, size: int, memory: RankData) -> bytes:
        address = self._address(rank, memory)
        return memory.read(address + start, size) if isinstance(address, int) else b""

    def _address(self, rank: Rank, memory: RankData) -> Union[int, Absent]:
        """Where the rank has it."""
        return place(rank, self._object, self._variable)

    def _data(self, address: int, memory: RankData) -> memoryview:
        return memory.view(address, self._variable.size)

    def _key(self, address: int, memory: RankData) -> bytes:
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

    def _address(self, rank: Rank, memory: RankData) -> Union[int, Absent]:
        whole = self._element.whole
        address = place(rank, self._object, whole)
        around = Surroundings(self._types, whole.language, memory.follow, hex)
        return address if isinstance(address, Absent) else place_of(around, whole.type, address, self._element.indices)

    def _data(self, address: int, memory: RankData) -> memoryview:
        if isinstance(address, BitPlace):
            return memoryview(bytes([memory.follow(address, 1)[0] >> address.bit & 1]))
        return memoryview(memory.follow(address, self._variable.size))

    def _key(self, address: int, memory: RankData) -> bytes:
        data = self._data(address, memory)
        return bytes(data) if len(data) <= SMALL else hashlib.sha256(data).digest()

    def result(self, memory: RankData) -> GlobalValues:
        """Return the values by group; what lies on a heap is not in a file that could be shared."""
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
