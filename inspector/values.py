"""Decodes the bytes of a variable by its type into text, in the way GDB's `print` writes it.

Takes bytes, a `TypeTable` and a naming of addresses; every loop over elements is bounded. It reads no memory but
through the `Surroundings` it is given, and it never believes a length that the target holds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import groupby
from typing import Optional, Union

from pieglobalsfind.dwarf_expression import evaluate
from pieglobalsfind.dwarf_names import type_name
from pieglobalsfind.dwarf_types import (
    Array,
    Base,
    Dimension,
    Enum,
    Function,
    Member,
    MemberPointer,
    Pointer,
    Struct,
    Text,
    TypeTable,
)
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent

MOST_ELEMENTS = 200  # GDB's `print elements`
REPEATS = 10  # GDB's `print repeats`
DEEPEST = 20  # GDB's `print max-depth`
EXTENDED_DIGITS = 21  # tell two 80-bit values apart
LARGEST_READ = 1 << 20  # bytes of an allocatable array that are looked at


@dataclass(frozen=True)
class Surroundings:
    """What decoding needs of the rank whose variable it is."""

    types: TypeTable
    language: str
    read: Callable[[int, int], bytes]
    name_address: Callable[[int], str]


@dataclass(frozen=True)
class Object:
    """Bytes of the target and where they lie."""

    address: int
    data: bytes


def decode(around: Surroundings, index: int, found: Object, depth: int = 0) -> str:
    """The value as text, one line."""
    bare = around.types.strip(index)
    if depth > DEEPEST:
        return "{...}"
    if isinstance(bare, Array):
        return decode_array(around, bare, found, depth)
    if len(found.data) < bare.size if not isinstance(bare, Function) else False:
        return "<incomplete>"
    if isinstance(bare, Struct):
        return decode_struct(around, bare, found, depth)
    if isinstance(bare, Base):
        return decode_base(bare, found.data[: bare.size], around.language)
    if isinstance(bare, Pointer):
        return decode_pointer(around, bare, found.data)
    if isinstance(bare, Enum):
        return decode_enum(bare, found.data, around.language)
    if isinstance(bare, Text):
        return quoted(found.data[: bare.size], "'")
    if isinstance(bare, MemberPointer):
        return decode_member_pointer(around, bare, found.data)
    return f"<{bare.size} bytes>" if not isinstance(bare, Function) else "<a function>"


def decode_base(bare: Base, data: bytes, language: str) -> str:
    """A number, a character or a truth value."""
    if bare.encoding in ("float", "imaginary_float"):
        return decode_float(data)
    if bare.encoding == "complex_float":
        half = len(data) // 2
        real, imaginary = decode_float(data[:half]), decode_float(data[half:])
        return f"({real},{imaginary})" if language == "Fortran" else f"{real} + {imaginary}i"
    value = int.from_bytes(data, "little", signed=bare.encoding in ("signed", "signed_char"))
    if bare.encoding == "boolean":
        return decode_boolean(value, language)
    if bare.encoding in ("signed_char", "unsigned_char", "UTF") and language != "Fortran":
        prefix = {2: "u", 4: "U"}.get(len(data), "") if bare.encoding == "UTF" else ""
        return f"{value} {prefix}{character(value & 0xFF if len(data) == 1 else value)}"
    return str(value)


def decode_boolean(value: int, language: str) -> str:
    if value not in (0, 1):
        return str(value)
    names = (".FALSE.", ".TRUE.") if language == "Fortran" else ("false", "true")
    return names[value]


def decode_float(data: bytes) -> str:
    """With as many digits as tell two values of this format apart, like GDB."""
    if len(data) == 4:
        return plain_float(struct.unpack("<f", data)[0], 9)
    if len(data) == 8:
        return plain_float(struct.unpack("<d", data)[0], 17)
    if len(data) in (12, 16):
        return decode_extended(data)
    return f"<{len(data)}-byte float>"


def plain_float(value: float, digits: int) -> str:
    if value != value:
        return "nan"
    text = f"{value:.{digits}g}"
    return "inf" if text == "inf" else text


def decode_extended(data: bytes) -> str:
    """x87's 80-bit format: 64 bits with an explicit integer bit, 15 of exponent, a sign."""
    significand, head = struct.unpack_from("<QH", data)
    sign, exponent = "-" if head & 0x8000 else "", head & 0x7FFF
    if exponent == 0x7FFF:
        return sign + ("inf" if significand << 1 & 0xFFFFFFFFFFFFFFFF == 0 else "nan")
    wide = Context(prec=60)
    value = wide.multiply(Decimal(significand), wide.power(Decimal(2), Decimal(exponent - 16383 - 63)))
    digits, power = f"{value:.{EXTENDED_DIGITS - 1}e}".split("e") if value else ("0", "0")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if -5 < int(power) < EXTENDED_DIGITS:
        return sign + f"{Decimal(digits + 'e' + power):f}"
    return f"{sign}{digits}e{power[0]}{int(power[1:]):02d}"


def decode_enum(bare: Enum, data: bytes, language: str) -> str:
    value = int.from_bytes(data[: bare.size], "little", signed=bare.signed)
    for one in bare.enumerators:
        if one.value == value:
            return f"{bare.name}::{one.name}" if language == "C++" and bare.name else one.name
    flags = [one for one in bare.enumerators if one.value > 0 and one.value & value == one.value]
    if value and flags and all(one.value & (one.value - 1) == 0 for one in bare.enumerators if one.value > 0):
        rest = value & ~sum(one.value for one in flags)
        names = [one.name for one in flags] + ([f"unknown: {rest:#x}"] if rest else [])
        return f"({' | '.join(names)})"
    return str(value)


def decode_pointer(around: Surroundings, bare: Pointer, data: bytes) -> str:
    """Who owns what it points to; the text itself for strings."""
    value = int.from_bytes(data[:8], "little")
    target = around.types.strip(bare.target)
    if value and isinstance(target, Base) and target.size == 1 and "char" in target.encoding:
        text = c_string(around, value)
        if text is not None:
            return text
    mark = "@" if bare.kind != "*" else ""
    return mark + (around.name_address(value) if value else "0x0")


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


def decode_member_pointer(around: Surroundings, bare: MemberPointer, data: bytes) -> str:
    value = int.from_bytes(data[:8], "little", signed=True)
    if bare.size == 8:
        return "NULL" if value == -1 else member_name(around, bare, value)
    if value & 1:
        return f"virtual function at vtable offset {value - 1}"
    return around.name_address(value) if value else "NULL"


def member_name(around: Surroundings, bare: MemberPointer, offset: int) -> str:
    container = around.types.strip(bare.container)
    if isinstance(container, Struct):
        for one in container.members:
            if one.offset == offset and not one.is_base and not one.name.startswith("_vptr"):
                return f"&{container.name}::{one.name}"
    return f"member at +{offset}"


def decode_struct(around: Surroundings, bare: Struct, found: Object, depth: int) -> str:
    if bare.opaque:
        return "<incomplete type>"
    opening, closing = ("( ", " )") if around.language == "Fortran" else ("{", "}")
    members = (decode_member(around, one, found, depth) for one in bare.members[:MOST_ELEMENTS])
    return opening + ", ".join(members) + closing


def decode_member(around: Surroundings, member: Member, found: Object, depth: int) -> str:
    if member.bit_size:
        text = decode_bits(around, member, found.data)
    else:
        part = Object(found.address + member.offset, found.data[member.offset :])
        text = decode(around, member.type, part, depth + 1)
    if member.is_base:
        return f"<{type_name(around.types, member.type, around.language)}> = {text}"
    return f"{member.name} = {text}" if member.name else text


def decode_bits(around: Surroundings, member: Member, data: bytes) -> str:
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
    """One dimension of an array as it is now: `stride` in bytes."""

    count: int
    stride: int


def decode_array(around: Surroundings, bare: Array, found: Object, depth: int) -> str:
    """Dense arrays from the bytes at hand, described ones (Fortran) from where their descriptor says."""
    element = around.types.size(bare.element)
    if bare.data_location is not None:
        return decode_described(around, bare, found, element, depth)
    extents = dense_extents(bare, element)
    if extents is None:
        return "<of unknown length>" if not found.data else f"<of unknown length, {len(found.data)} bytes>"
    return decode_elements(around, bare, found, extents, depth)


def dense_extents(bare: Array, element: int) -> Optional[list[Extent]]:
    """The dimensions, slowest first, or None when a count is unknown."""
    stride, extents = element, []
    for one in bare.dimensions if bare.column_major else reversed(bare.dimensions):
        if not isinstance(one.count, int):
            return None
        extents.append(Extent(one.count, stride))
        stride *= one.count
    return extents[::-1]


def decode_described(around: Surroundings, bare: Array, found: Object, element: int, depth: int) -> str:
    """A Fortran allocatable or pointer array (DWARF 5, 5.18.1)."""
    for expression, words in ((bare.allocated, "<not allocated>"), (bare.associated, "<not associated>")):
        if expression is not None and not truth(evaluate(expression, found.address, around.read, (MemoryUnreadable,))):
            return words
    start = evaluate(bare.data_location, found.address, around.read, (MemoryUnreadable,))
    extents = [described_extent(around, one, found.address, element) for one in bare.dimensions]
    known = [one for one in extents if isinstance(one, Extent)]
    if isinstance(start, Absent) or len(known) != len(extents):
        return f"<cannot be read: {start if isinstance(start, Absent) else 'its bounds are unknown'}>"
    span = sum((one.count - 1) * one.stride for one in known) + element if all(one.count for one in known) else 0
    if any(one.stride < 0 for one in known) or not 0 <= span <= LARGEST_READ:
        return f"<{' x '.join(str(one.count) for one in known)} elements>"
    try:
        data = around.read(start & (1 << 64) - 1, span) if span else b""
    except MemoryUnreadable as error:
        return f"<{error}>"
    return decode_elements(around, bare, Object(start, data), known[::-1], depth)


def truth(value: Union[int, Absent]) -> bool:
    return not isinstance(value, Absent) and value != 0


def described_extent(around: Surroundings, one: Dimension, address: int, element: int) -> Optional[Extent]:
    lower, upper = (evaluate(bound, address, around.read, (MemoryUnreadable,)) for bound in (one.lower, one.upper))
    stride = element if one.stride is None else evaluate(one.stride, address, around.read, (MemoryUnreadable,))
    if isinstance(lower, Absent) or isinstance(upper, Absent) or isinstance(stride, Absent):
        return None
    return Extent(max(0, upper - lower + 1), stride)


def decode_elements(around: Surroundings, bare: Array, found: Object, extents: list[Extent], depth: int) -> str:
    """All dimensions, slowest first, at most `MOST_ELEMENTS` elements in all."""
    left = [MOST_ELEMENTS]
    return decode_dimension(around, bare, found, extents, depth, left)


def decode_dimension(
    around: Surroundings, bare: Array, found: Object, extents: list[Extent], depth: int, left: list[int]
) -> str:
    extent, inner = (extents[0], extents[1:]) if extents else (Extent(1, 0), [])
    if not inner and is_characters(around.types, bare):
        return decode_characters(found.data[: extent.count])
    size = sum((one.count - 1) * one.stride for one in inner) + around.types.size(bare.element)

    def elements() -> Iterator[str]:
        for number in range(min(extent.count, left[0] + REPEATS * MOST_ELEMENTS)):
            start = number * extent.stride
            part = Object(found.address + start, found.data[start : start + max(size, 0)])
            if inner:
                yield decode_dimension(around, bare, part, inner, depth, left)
            else:
                yield decode(around, bare.element, part, depth + 1)

    separator = " " if inner and around.language == "Fortran" else ", "
    opening, closing = ("(", ")") if around.language == "Fortran" else ("{", "}")
    repeats = ", <repeats" if around.language == "Fortran" else " <repeats"
    parts = list(folded(elements(), extent.count, left, bool(inner), repeats))
    more = "..." if left[0] <= 0 and parts[-1:] == ["..."] else ""
    return opening + separator.join(parts[: len(parts) - bool(more)]) + more + closing


def folded(elements: Iterable[str], count: int, left: list[int], nested: bool, repeats: str) -> Iterator[str]:
    """Elements with long runs of equal ones written once, and "..." where the limit is reached."""
    seen = 0
    for text, group in groupby(elements):
        run = sum(1 for _ in group)
        seen += run
        fold = run >= REPEATS
        shown = 1 if fold else run if nested else min(run, left[0])
        if not nested:
            left[0] -= REPEATS if fold else run
        yield from [f"{text}{repeats} {run} times>" if fold else text] * shown
        if left[0] <= 0 and seen < count:
            yield "..."
            return


def is_characters(types: TypeTable, bare: Array) -> bool:
    element = types.strip(bare.element)
    return isinstance(element, Base) and element.size == 1 and element.encoding in ("signed_char", "unsigned_char")


def decode_characters(data: bytes) -> str:
    """A char array as GDB shows it: the last zero left out, long runs of equal characters folded."""
    text = data[:-1] if data.endswith(b"\0") and len(data) <= MOST_ELEMENTS else data
    parts: list[str] = []
    plain = b""
    left = MOST_ELEMENTS
    for run in (bytes(group) for _, group in groupby(text)):
        if left <= 0:
            break
        left -= min(len(run), REPEATS)
        if len(run) > REPEATS:
            parts += [quoted(plain, '"')] if plain else []
            parts.append(f"{character(run[0])} <repeats {len(run)} times>")
            plain = b""
        else:
            plain += run
    parts += [quoted(plain, '"')] if plain or not parts else []
    return ", ".join(parts) + ("..." if left <= 0 and len(text) > MOST_ELEMENTS and plain else "")


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\033", 92: "\\\\"}


def character(code: int, quote: str = "'") -> str:
    """A character literal, control and non-ASCII characters escaped."""
    return quote + escaped(code, quote) + quote


def escaped(code: int, quote: str) -> str:
    if code in _ESCAPES:
        return _ESCAPES[code]
    if 32 <= code < 127:
        return f"\\{quote}" if chr(code) == quote else chr(code)
    return f"\\{code:03o}" if code < 256 else f"\\u{code:04x}"


def quoted(data: bytes, quote: str) -> str:
    return quote + "".join(escaped(byte, quote) for byte in data) + quote
