"""The text that pointers lead to: C's strings up to their null byte, Fortran's by the length beside them."""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.dwarf.types import CharacterType, Member, Pointer, Struct
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.values.array_extents import LARGEST_READ
from pieglobalsfind.values.scalar_text import MOST_ELEMENTS, quoted
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes


def c_string(around: Surroundings, address: int) -> Optional[str]:
    """The text at a `char *`, as far as it can be read and is text; else None."""
    try:
        data = around.read(address, MOST_ELEMENTS)
    except MemoryUnreadable:
        try:
            data = around.read(address, min(MOST_ELEMENTS, 4096 - address % 4096))
        except MemoryUnreadable:
            return None
    text, end, _ = data.partition(b"\0")
    if any(byte < 7 or byte == 0x7F for byte in text):
        return None
    return quoted(text, '"') + ("" if end else "...")


def deferred_text(around: Surroundings, bare: Struct, member: Member, variable_bytes: VariableBytes) -> Optional[str]:
    """A component `character(len=:), allocatable`: gfortran keeps its length in one called `_NAME_length`."""
    pointer = around.types.strip(member.type)
    length = next((sibling for sibling in bare.members if sibling.name == f"_{member.name}_length"), None)
    if (
        length is None
        or not isinstance(pointer, Pointer)
        or not isinstance(around.types.strip(pointer.target), CharacterType)
    ):
        return None
    address, count = (
        int.from_bytes(variable_bytes.data[at : at + 8], "little", signed=True) for at in (member.offset, length.offset)
    )
    text = characters(around, address & (1 << 64) - 1, count)
    return None if text is None else f"{member.name} = {text}"


def of_deferred_length(around: Surroundings, address: int, length_at: int) -> Optional[str]:
    """A module's `character(len=:), allocatable`: gfortran keeps its length in a variable beside it."""
    place = around.own(length_at)
    try:
        data = around.read(place, 8) if isinstance(place, int) else b""
    except MemoryUnreadable:
        return None
    return characters(around, address, int.from_bytes(data, "little", signed=True)) if data else None


def characters(around: Surroundings, address: int, count: int) -> Optional[str]:
    """Fortran's text of so many characters; None if it is not there."""
    if not address or not 0 <= count <= LARGEST_READ:
        return None
    held = around.contents.allow(count)
    try:
        data = around.read(address, held)
    except MemoryUnreadable:
        return None
    if count > MOST_ELEMENTS:
        around.contents.add(data)
    return f"{quoted(data[:MOST_ELEMENTS], chr(39))}{'...' if count > MOST_ELEMENTS else ''}"
