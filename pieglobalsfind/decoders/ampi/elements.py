"""Find the array elements of AMPI's ranks by Charm++'s tables of groups and arrays.

Takes a target and its loader; gives the words of elements, in whatever heap they lie and however large that is. A
TCharm's words lead to the rank's thread. Tables and classes are found by exported symbols, members by their form: no
offset of a class is known beforehand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Optional

from pieglobalsfind.decoders.ampi.runtime_variables import MOST_ELEMENTS, MOST_RANKS, Loader
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import Target, read_many, read_or_none, word_at

GROUPS, GROUPS_SMP = "Cpv__groupTable_", "Cpv_addr__groupTable_"
ARRAY, ELEMENT = "_ZTV7CkArray", "_ZTV6TCharm"
# Bytes before the functions of a table, where objects point to: 8 more for each virtual base (Itanium C++ ABI, 2.5.2)
VTABLE = range(16, 64, 8)
GROUP_TABLE = struct.Struct("<QQi")  # GroupIdxArray: table, hash table, length
VECTOR = struct.Struct("<QQQ")  # std::vector: begin, end, end of room
ENTRY_SIZE = 24  # TableEntry: the group's object first
MOST_GROUPS = 1 << 16
ARRAY_SIZE, ELEMENT_SIZE = 0x800, 0x200  # bytes that are searched for members
PAGE = 4096


def words_of_elements(target: Target, loader: Loader) -> list[tuple[int, ...]]:
    """Return the first words of each TCharm element of the process, one of which points to the rank's thread."""
    return [words for _, words in placed_elements(target, loader).values()]


def placed_elements(target: Target, loader: Loader, kind: str = ELEMENT) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The first words of each element of a class, by its address; before them the processing element that has it."""
    array, element = (loader.elf.symbol(name) for name in (ARRAY, kind))
    if array is None or element is None:
        return {}
    number_at: dict[int, int] = {}
    for number, table in enumerate(group_tables(target, loader)):
        arrays = of_class(target, list(groups(target, table)), array)
        for address in _elements(target, arrays, element):
            number_at.setdefault(address, number)
    places = [(address, ELEMENT_SIZE) for address in number_at]
    read = (data or beginning(target, *place) for place, data in zip(places, read_many(target, places)))
    return {
        address: (number, struct.unpack_from(f"<{len(data) // 8}Q", data))
        for (address, number), data in zip(number_at.items(), read)
    }


def group_tables(target: Target, loader: Loader) -> Iterator[int]:
    """Where the group tables of the process's processing elements are."""
    smp, single = loader.elf.symbol(GROUPS_SMP), loader.elf.symbol(GROUPS)
    try:
        if smp is None:
            if single is not None:
                yield word_at(target, single)
            return
        pointers = word_at(target, smp)
        for number in range(MOST_ELEMENTS):
            yield word_at(target, word_at(target, pointers + 8 * number))
    except MemoryUnreadable:
        return


def groups(target: Target, table: int) -> Iterator[int]:
    """The objects of a group table."""
    head = read_or_none(target, table, GROUP_TABLE.size)
    first, _, count = GROUP_TABLE.unpack(head) if head else (0, 0, 0)
    data = read_or_none(target, first, ENTRY_SIZE * count) if 0 < count <= MOST_GROUPS else None
    for at in range(0, len(data or b""), ENTRY_SIZE):
        (pointer,) = struct.unpack_from("<Q", data or b"", at)
        if pointer:
            yield pointer


def of_class(target: Target, objects: Sequence[int], table: int) -> list[int]:
    """The objects that have the table of functions."""
    heads = read_many(target, [(place, 8) for place in objects])
    return [place for place, head in zip(objects, heads) if _is_table(head, table)]


def _is_table(head: Optional[bytes], table: int) -> bool:
    return head is not None and int.from_bytes(head, "little") - table in VTABLE


def _elements(target: Target, arrays: Sequence[int], table: int) -> Iterator[int]:
    """The elements of those arrays that are of TCharms, by the vectors of pointers in them.

    Where the first one has its vector, all have theirs: a job has two arrays for each rank.
    """
    for at, array in enumerate(arrays):
        data = beginning(target, array, ARRAY_SIZE)
        places = []
        for place in range(0, len(data) - VECTOR.size + 1, 8):
            held = _held(target, VECTOR.unpack_from(data, place), table)
            if held:
                places.append(place)
                yield from held
        if places:
            wanted = [(array_start + place, VECTOR.size) for array_start in arrays[at + 1 :] for place in places]
            for vector in read_many(target, wanted):
                yield from _held(target, VECTOR.unpack(vector), table) if vector is not None else ()
            return


def of_form(vector: Sequence[int], most: int) -> bool:
    """Whether three words can be a std::vector of pointers, not empty and with no more than `most`."""
    begin, end, room = vector
    return 0 < begin < end <= room and begin % 8 == end % 8 == room % 8 == 0 and end - begin <= 8 * most


def _held(target: Target, vector: Sequence[int], table: int) -> list[int]:
    """The elements that a vector points to, none if the first is not of the class."""
    begin, end, _ = vector
    if not of_form(vector, MOST_RANKS):
        return []
    first = read_or_none(target, begin, 8)
    if first is None or not of_class(target, [int.from_bytes(first, "little")], table):
        return []
    held = read_or_none(target, begin, end - begin) or b""
    return of_class(target, struct.unpack(f"<{len(held) // 8}Q", held), table)


def beginning(target: Target, address: int, size: int) -> bytes:
    """As many of the first bytes as can be read."""
    data = read_or_none(target, address, size)
    return data if data is not None else read_or_none(target, address, min(size, -address % PAGE)) or b""
