"""Decodes the bytes of a variable by its type into text, in the way GDB's `print` writes it.

Takes bytes, a `TypeTable` and a naming of addresses; every loop over elements is bounded. It reads no memory but
through the `Surroundings` it is given, and it never believes a length that the target holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Optional, Union

from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.names import type_name
from pieglobalsfind.dwarf.types import (
    Array,
    Base,
    CharacterType,
    Dimension,
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
from pieglobalsfind.values.containers.contents import ContainedObject, Contents, ContentSource
from pieglobalsfind.values.containers.recognize import is_container, text_of
from pieglobalsfind.values.containers.unordered import in_memory_order
from pieglobalsfind.values.scalar_text import (
    MOST_ELEMENTS,
    REPEATS,
    decode_base,
    decode_boolean,
    decode_characters,
    decode_enum,
    quoted,
    raw,
)

DEEPEST = 20  # GDB's `print max-depth`
FOLLOWED = 1  # pointers in a variable's own members and elements are followed
LARGEST_POINTEE = 4096  # bytes
LARGEST_READ = 1 << 26  # bytes of an allocatable array that are looked at
MOST_TEXTS = 100_000  # of elements that are kept
SHALLOW = 5  # levels of types within one another that a text may be kept of


def never(name: str) -> bool:
    """No pointer is followed."""
    return False


def nowhere(vaddr: int) -> Absent:
    """It is not known where the rank has anything."""
    return Absent("where it lies is not known")


@dataclass(frozen=True)
class Surroundings:
    """What decoding needs of the rank whose variable it is, and what it has read of that one's containers.

    `follow` says of a pointer by its name whether the object that it leads to is shown, too, one level deep. `texts`
    are those of elements by type and bytes, of values that mean the same on all ranks. `is_futile` says that what is
    read now is for its places alone, because no text of it will be shown. `own` gives where the rank has what the
    variable's file has at a vaddr.
    """

    types: TypeTable
    language: str
    read: Callable[[int, int], bytes]
    name_address: Callable[[int], str]
    contents: Contents = field(default_factory=Contents)
    follow: Callable[[str], bool] = never
    texts: dict[tuple[int, bytes], str] = field(default_factory=dict)
    is_futile: Callable[[], bool] = bool
    own: Callable[[int], Union[int, Absent]] = nowhere


class VariableBytes(NamedTuple):
    """Bytes of the target and where they lie."""

    address: int
    data: bytes


def decode(around: Surroundings, index: int, variable_bytes: VariableBytes) -> str:
    """The value as text, one line."""
    return in_memory_order(marked_text(around, index, variable_bytes))


def marked_text(around: Surroundings, index: int, variable_bytes: VariableBytes, depth: int = 0) -> str:
    """The same with marks around what has no order (`containers.unordered`)."""
    bare = around.types.strip(index)
    if depth > DEEPEST:
        return "{...}"
    if isinstance(bare, Array):
        return decode_array(around, bare, variable_bytes, depth)
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


def deferred_text(around: Surroundings, bare: Struct, member: Member, variable_bytes: VariableBytes) -> Optional[str]:
    """A component `character(len=:), allocatable`: gfortran keeps its length in one called `_NAME_length`."""
    pointer = around.types.strip(member.type)
    length = next((one for one in bare.members if one.name == f"_{member.name}_length"), None)
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


# Arrays


@dataclass(frozen=True)
class Extent:
    """One dimension of an array as it is now: `stride` in bytes, `lowest` index."""

    count: int
    stride: int
    lowest: int = 0


def decode_array(around: Surroundings, bare: Array, variable_bytes: VariableBytes, depth: int) -> str:
    """Dense arrays from the bytes at hand, described ones (Fortran) from where their descriptor says."""
    element = around.types.size(bare.element)
    if bare.data_location is not None:
        return decode_described(around, bare, variable_bytes, element, depth)
    extents = dense_extents(bare, element)
    if extents is None:
        return (
            "<of unknown length>"
            if not variable_bytes.data
            else f"<of unknown length, {len(variable_bytes.data)} bytes>"
        )
    return decode_elements(around, bare, variable_bytes, extents, depth)


def dense_extents(bare: Array, element: int) -> Optional[list[Extent]]:
    """The dimensions, slowest first, or None when a count is unknown."""
    stride, extents = element, []
    for dimension in bare.dimensions if bare.column_major else reversed(bare.dimensions):
        if not isinstance(dimension.count, int):
            return None
        extents.append(Extent(dimension.count, stride, dimension.lower if isinstance(dimension.lower, int) else 0))
        stride *= dimension.count
    return extents[::-1]


@dataclass(frozen=True)
class Elements:
    """The elements that a descriptor describes: dimensions slowest first, and their bytes."""

    extents: list[Extent]
    found: VariableBytes


def decode_described(around: Surroundings, bare: Array, variable_bytes: VariableBytes, element: int, depth: int) -> str:
    """A Fortran allocatable or pointer array."""
    elements = described_elements(around, bare, variable_bytes, element)
    if isinstance(elements, Elements):
        return decode_elements(around, bare, elements.found, elements.extents, depth)
    return elements


def described_elements(
    around: Surroundings, bare: Array, variable_bytes: VariableBytes, element: int
) -> Union[Elements, str]:
    """The elements of an array with a descriptor, or what to show instead of them."""
    extents = described_extents(around, bare, variable_bytes.address, element)
    if isinstance(extents, str):
        return extents
    start, known = extents
    span = sum((one.count - 1) * one.stride for one in known) + element if all(one.count for one in known) else 0
    if any(one.stride < 0 for one in known) or not 0 <= span <= LARGEST_READ:
        return f"<{' x '.join(str(one.count) for one in known[::-1])} elements>"
    try:
        data = around.read(start, span) if span else b""
    except MemoryUnreadable as error:
        return f"<{error}>"
    return Elements(known, VariableBytes(start, data))


def described_extents(
    around: Surroundings, bare: Array, address: int, element: int
) -> Union[tuple[int, list[Extent]], str]:
    """Where the elements of an array with a descriptor begin (DWARF 5, 5.18.1), and its dimensions, slowest first."""
    assert bare.data_location is not None
    for expression, words in ((bare.allocated, "<not allocated>"), (bare.associated, "<not associated>")):
        if expression is not None and not truth(evaluate(expression, address, around.read, (MemoryUnreadable,))):
            return words
    start = evaluate(bare.data_location, address, around.read, (MemoryUnreadable,))
    extents = [_described_extent(around, dimension, address, element) for dimension in bare.dimensions]
    known = [extent for extent in extents if isinstance(extent, Extent)]
    if isinstance(start, Absent) or len(known) != len(extents):
        return f"<can't be read: {start if isinstance(start, Absent) else 'its bounds are unknown'}>"
    return start & (1 << 64) - 1, known[::-1]


def elements_of(around: Surroundings, index: int, variable_bytes: VariableBytes) -> bytes:
    """The bytes that make up the value: of an array with a descriptor its elements, else the variable itself."""
    bare = around.types.strip(index)
    if not isinstance(bare, Array) or bare.data_location is None:
        return variable_bytes.data
    elements = described_elements(around, bare, variable_bytes, around.types.size(bare.element))
    return elements.found.data if isinstance(elements, Elements) else b""


def truth(value: Union[int, Absent]) -> bool:
    """Return whether a value is known and not zero."""
    return not isinstance(value, Absent) and value != 0


def _described_extent(around: Surroundings, dimension: Dimension, address: int, element: int) -> Optional[Extent]:
    lower, upper = (
        evaluate(bound, address, around.read, (MemoryUnreadable,)) for bound in (dimension.lower, dimension.upper)
    )
    stride = (
        element if dimension.stride is None else evaluate(dimension.stride, address, around.read, (MemoryUnreadable,))
    )
    if isinstance(lower, Absent) or isinstance(upper, Absent) or isinstance(stride, Absent):
        return None
    return Extent(max(0, upper - lower + 1), stride, lower)


def decode_elements(
    around: Surroundings, bare: Array, variable_bytes: VariableBytes, extents: list[Extent], depth: int
) -> str:
    """All dimensions, slowest first, at most `MOST_ELEMENTS` elements in all."""
    return Elementwise(around, bare, depth).dimension(variable_bytes, extents)


class Elementwise:
    """Writes one array; long runs of elements with equal bytes are written once, and count as `REPEATS` elements."""

    def __init__(self, around: Surroundings, bare: Array, depth: int) -> None:
        self._around = around
        self._bare = bare
        self._depth = depth
        self._left = MOST_ELEMENTS
        self._fortran = around.language == "Fortran"

    def dimension(self, variable_bytes: VariableBytes, extents: list[Extent]) -> str:
        """One dimension and all within it."""
        extent, inner = (extents[0], extents[1:]) if extents else (Extent(1, 0), [])
        if not inner and _is_characters(self._around.types, self._bare):
            return decode_characters(variable_bytes.data[: extent.count])
        size = sum((one.count - 1) * one.stride for one in inner) + self._around.types.size(self._bare.element)
        parts: list[str] = []
        number = 0
        while number < extent.count and self._left > 0:
            start = number * extent.stride
            part = VariableBytes(variable_bytes.address + start, variable_bytes.data[start : start + max(size, 0)])
            text = (
                self.dimension(part, inner)
                if inner
                else marked_text(self._around, self._bare.element, part, self._depth + 1)
            )
            run = run_length(variable_bytes.data, extent, number, part.data)
            number += self._write(parts, text, run, bool(inner))
        return self._joined(parts, bool(inner), number < extent.count)

    def _write(self, parts: list[str], text: str, run: int, nested: bool) -> int:
        """Add an element that stands `run` times; returns how many of them are dealt with."""
        if run >= REPEATS:
            parts.append(f"{text}{',' if self._fortran else ''} <repeats {run} times>")
            self._left -= 0 if nested else REPEATS
            return run
        shown = 1 if nested else min(run, self._left)
        parts += [text] * shown
        self._left -= 0 if nested else shown
        return shown

    def _joined(self, parts: list[str], nested: bool, more: bool) -> str:
        opening, closing = ("(", ")") if self._fortran else ("{", "}")
        separator = " " if nested and self._fortran else ", "
        return opening + separator.join(parts) + ("..." if more else "") + closing


def run_length(data: bytes, extent: Extent, number: int, element: bytes) -> int:
    """How many elements from `number` on have the bytes `element`; dense ones are compared in growing blocks."""
    size, length = len(element), 1
    if size and extent.stride == size:
        step = 1
        while step:
            block = min(step, extent.count - number - length)
            start = (number + length) * size
            if block > 0 and data[start : start + block * size] == element * block:
                length += block
                step = min(step * 2, 1 << 16)
            else:
                step = min(step, block) // 2
        return length
    while number + length < extent.count:
        start = (number + length) * extent.stride
        if data[start : start + size] != element:
            break
        length += 1
    return length


def _is_characters(types: TypeTable, bare: Array) -> bool:
    element = types.strip(bare.element)
    return isinstance(element, Base) and element.size == 1 and element.encoding in ("signed_char", "unsigned_char")
