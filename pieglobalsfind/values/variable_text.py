"""Decodes the bytes of a variable by its type into text, in the way GDB's `print` writes it.

Takes bytes, a `TypeTable` and a naming of addresses; every loop over elements is bounded. It reads no memory but
through the `Surroundings` it is given, and it never believes a length that the target holds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import (
    Array,
    Base,
    CharacterType,
    Enum,
    Function,
    Member,
    MemberPointer,
    Pointer,
    Struct,
    TypeTable,
)
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent
from pieglobalsfind.values.array_extents import LARGEST_READ
from pieglobalsfind.values.array_text import array_text
from pieglobalsfind.values.containers.bounded_contents import ContainedObject, ContentSource
from pieglobalsfind.values.containers.order_free_text import in_memory_order
from pieglobalsfind.values.containers.recognize import is_container, text_of
from pieglobalsfind.values.pointed_text import c_string, deferred_text, of_deferred_length
from pieglobalsfind.values.scalar_text import MOST_ELEMENTS, decode_base, decode_boolean, decode_enum, quoted, raw
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes, never

DEEPEST = 20  # GDB's `print max-depth`
FOLLOWED = 1  # pointers in a variable's own members and elements are followed
LARGEST_POINTEE = 4096  # bytes
MOST_TEXTS = 100_000  # of elements that are kept
SHALLOW = 5  # levels of types within one another that a text may be kept of


def decode(around: Surroundings, index: int, variable_bytes: VariableBytes) -> str:
    """The value as text, one line."""
    return in_memory_order(marked_text(around, index, variable_bytes))


def marked_text(around: Surroundings, index: int, variable_bytes: VariableBytes, depth: int = 0) -> str:
    """The same with marks around what has no order (`containers.order_free_text`)."""
    bare = around.types.strip(index)
    if depth > DEEPEST:
        return "{...}"
    if isinstance(bare, Array):
        return array_text(around, bare, variable_bytes, partial(_marked_element, around, bare, depth))
    if len(variable_bytes.data) < bare.size if not isinstance(bare, Function) else False:
        return "<incomplete>"
    if isinstance(bare, Struct):
        return decode_class(around, index, bare, variable_bytes, depth)
    if isinstance(bare, Base):
        return decode_base(bare, variable_bytes.data[: bare.size], around.language)
    if isinstance(bare, Pointer):
        return decode_pointer(around, bare, variable_bytes.data, depth)
    if isinstance(bare, Enum):
        return decode_enum(bare, variable_bytes.data, around.language)
    if isinstance(bare, CharacterType):
        return quoted(variable_bytes.data[: bare.size], "'")
    if isinstance(bare, MemberPointer):
        return _decode_member_pointer(around, bare, variable_bytes.data)
    if isinstance(bare, Function):
        return "<a function>"
    return raw(variable_bytes.data) if depth == 0 and variable_bytes.data else f"<{bare.size} bytes>"


def _marked_element(around: Surroundings, bare: Array, depth: int, element: VariableBytes) -> str:
    return marked_text(around, bare.element, element, depth + 1)


def decode_class(around: Surroundings, index: int, bare: Struct, variable_bytes: VariableBytes, depth: int) -> str:
    """A container's contents, or the members of any other class."""
    if around.language == "C++":

        def show(part: ContainedObject) -> str:
            return element_text(around, part, depth + 1)

        source = ContentSource(around.types, around.read, show, partial(around.types.kept, is_plain), around.contents)
        text = text_of(source, ContainedObject(index, variable_bytes.address, variable_bytes.data))
        if text is not None:
            return text
    return decode_struct(around, bare, variable_bytes, depth)


def element_text(around: Surroundings, part: ContainedObject, depth: int) -> str:
    """The text of an object in a container; of a simple one that was seen before, what it was then."""
    whole = VariableBytes(part.address, part.data)
    if depth > SHALLOW or not around.types.kept(is_simple, part.type):
        return marked_text(around, part.type, whole, depth)
    if around.is_futile():
        return ""
    key = part.type, part.data
    text = around.texts.get(key)
    if text is None:
        if len(around.texts) > MOST_TEXTS:
            around.texts.clear()
        text = around.texts[key] = marked_text(around, part.type, whole, depth)
    return text


def decode_pointer(around: Surroundings, bare: Pointer, data: bytes, depth: int = DEEPEST) -> str:
    """Who owns what it points to; the text itself for strings, and the object if that is to be followed."""
    value = int.from_bytes(data[:8], "little")
    target = around.types.strip(bare.target)
    if value and isinstance(target, Base) and target.size == 1 and "char" in target.encoding:
        text = c_string(around, value)
        if text is not None:
            return text
    if value and isinstance(target, CharacterType) and target.length_at is not None:
        text = of_deferred_length(around, value, target.length_at)
        if text is not None:
            return text
    mark = "@" if bare.kind != "*" else ""
    name = around.name_address(value) if value else "0x0"
    is_followed = value and depth <= FOLLOWED and around.follow(name)
    return mark + name + (pointee(around, bare.target, value) if is_followed else "")


def pointee(around: Surroundings, index: int, address: int) -> str:
    """` -> {x = 1}`; "" for what is not an object of a known size, or can't be read."""
    size, bare = around.types.size(index), around.types.strip(index)
    if not 0 < size <= LARGEST_POINTEE or not isinstance(bare, (Base, Enum, Struct, CharacterType)):
        return ""
    try:
        data = around.read(address, size) if around.contents.allow(size) == size else b""
    except MemoryUnreadable:
        return ""
    return f" -> {marked_text(replace(around, follow=never), index, VariableBytes(address, data), 1)}" if data else ""


def _decode_member_pointer(around: Surroundings, bare: MemberPointer, data: bytes) -> str:
    value = int.from_bytes(data[:8], "little", signed=True)
    if bare.size == 8:
        return "NULL" if value == -1 else _member_name(around, bare, value)
    if value & 1:
        return f"virtual function at vtable offset {value - 1}"
    return around.name_address(value) if value else "NULL"


def _member_name(around: Surroundings, bare: MemberPointer, offset: int) -> str:
    container = around.types.strip(bare.container)
    if isinstance(container, Struct):
        for member in container.members:
            if (
                member.offset == offset
                and member.location is None
                and not member.is_base
                and not member.name.startswith("_vptr")
            ):
                return f"&{container.name}::{member.name}"
    return f"member at +{offset}"


def decode_struct(
    around: Surroundings, bare: Struct, variable_bytes: VariableBytes, depth: int, virtual: Optional[set[int]] = None
) -> str:
    """`virtual` are the virtual base classes that were shown already: an object has one of each."""
    if bare.opaque:
        return "<incomplete type>"
    shown: set[int] = set() if virtual is None else virtual
    opening, closing = ("( ", " )") if around.language == "Fortran" else ("{", "}")
    members: list[str] = []
    for member in bare.members[:MOST_ELEMENTS]:
        if member.location is None or member.type not in shown:
            shown.update((member.type,) if member.location is not None else ())
            text = deferred_text(around, bare, member, variable_bytes) if around.language == "Fortran" else None
            members.append(text or _decode_member(around, member, variable_bytes, depth, shown))
    return opening + ", ".join(members) + ("..." if len(bare.members) > MOST_ELEMENTS else "") + closing


def _decode_member(
    around: Surroundings, member: Member, variable_bytes: VariableBytes, depth: int, virtual: set[int]
) -> str:
    if member.bit_size:
        text = _decode_bits(around, member, variable_bytes.data)
    else:
        part, bare = part_of(around, member, variable_bytes), around.types.strip(member.type)
        if isinstance(part, str):
            text = part
        elif (
            member.is_base
            and isinstance(bare, Struct)
            and depth < DEEPEST
            and not is_container(around.types, member.type)
        ):
            text = decode_struct(around, bare, part, depth + 1, virtual)
        else:
            text = marked_text(around, member.type, part, depth + 1)
    if member.is_base:
        return f"<{type_name(around.types, member.type, around.language)}> = {text}"
    return f"{member.name} = {text}" if member.name else text


def part_of(around: Surroundings, member: Member, variable_bytes: VariableBytes) -> Union[VariableBytes, str]:
    """Where a member lies, with its bytes; or what to show instead."""
    size = around.types.size(member.type)
    if member.location is None:
        return VariableBytes(
            variable_bytes.address + member.offset, variable_bytes.data[member.offset : member.offset + size]
        )
    start = evaluate(member.location, variable_bytes.address, around.read, (MemoryUnreadable,), on_stack=True)
    if isinstance(start, Absent):
        return f"<can't be read: {start}>"
    start &= (1 << 64) - 1
    at = start - variable_bytes.address
    if 0 <= at <= len(variable_bytes.data) - size:
        return VariableBytes(start, variable_bytes.data[at : at + size])
    if size > LARGEST_READ:
        return f"<{size} bytes>"
    try:
        return VariableBytes(start, around.read(start, size))
    except MemoryUnreadable as error:
        return f"<{error}>"


def _decode_bits(around: Surroundings, member: Member, data: bytes) -> str:
    first = member.bit_offset // 8
    word = int.from_bytes(data[first : first + 16], "little") >> member.bit_offset % 8
    value = word & ((1 << member.bit_size) - 1)
    bare = around.types.strip(member.type)
    signed = (isinstance(bare, Base) and bare.encoding.startswith("signed")) or (isinstance(bare, Enum) and bare.signed)
    if signed and value >> (member.bit_size - 1):
        value -= 1 << member.bit_size
    if isinstance(bare, Enum):
        return decode_enum(bare, (value & (1 << 64) - 1).to_bytes(8, "little")[: bare.size], around.language)
    boolean = isinstance(bare, Base) and bare.encoding == "boolean"
    return decode_boolean(value, around.language) if boolean else str(value)


def is_simple(types: TypeTable, index: int) -> bool:
    """Whether it is a number, or a few: its bytes alone make its text."""
    bare = types.strip(index)
    if isinstance(bare, Struct) and not bare.opaque:
        return all(member.location is None and _is_number(types, member.type) for member in bare.members)
    return _is_number(types, index)


def _is_number(types: TypeTable, index: int) -> bool:
    return isinstance(types.strip(index), (Base, Enum))


def is_plain(types: TypeTable, index: int) -> bool:
    """Whether equal bytes are equal values on every rank: without pointers, containers, or padding that may differ."""
    bare = types.strip(index)
    if isinstance(bare, Struct):
        parts = [member for member in bare.members if not is_empty(types, member)]
        is_whole = not bare.opaque and sum(types.size(part.type) for part in parts) == bare.size
        return is_whole and all(not part.bit_size and is_plain(types, part.type) for part in parts)
    if isinstance(bare, Base):
        numbers = 2 if "complex" in bare.encoding else 1
        return bare.size // numbers <= 8  # the x87's numbers have padding
    return isinstance(bare, Enum) or (isinstance(bare, Array) and is_plain(types, bare.element))


def is_empty(types: TypeTable, member: Member) -> bool:
    """Whether it is a base class without members, which takes no room."""
    bare = types.strip(member.type)
    return member.is_base and isinstance(bare, Struct) and not bare.opaque and not bare.members
