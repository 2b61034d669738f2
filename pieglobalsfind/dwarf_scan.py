"""Runs through a unit's DIEs as bytes and stops only where variables of static storage, or what names them, can be.

Takes a unit of an opened `Module`; gives entries: where a DIE is, what kind it is, and its attributes when asked for.
Most DIEs are locals, parameters and members: they are passed over by their abbreviation's size, ten times as fast as a
library can be asked about each. What is written unusually, or damaged, is told by `UnreadableError` and left to libdw.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Callable, NamedTuple, Optional, Union

from pieglobalsfind.dwarf_libdw import BLOCK_FORMS, Die, Module, Section, Unit
from pieglobalsfind.dwarf_walk import DEEPEST

Value = Union[int, bytes, None]
Place = Union[int, tuple[int, struct.Struct]]

MOST_ABBREVIATIONS = 100_000  # of one unit

# DW_TAG (DWARF 5, table 7.3)
TAG_ENUMERATION, TAG_ENTRY_POINT, TAG_LEXICAL_BLOCK, TAG_MEMBER, TAG_TYPEDEF = 0x04, 0x03, 0x0B, 0x0D, 0x16
TAG_COMMON_BLOCK, TAG_INLINED, TAG_MODULE, TAG_SUBPROGRAM, TAG_VARIABLE = 0x1A, 0x1D, 0x1E, 0x2E, 0x34
TAG_NAMESPACE, TAG_PARAMETER = 0x39, 0x05
RECORDS = (0x02, 0x13, 0x17, 0x38)  # class, structure, union, interface
SIZED = (*RECORDS, TAG_ENUMERATION, 0x24, 0x0F, 0x10, 0x42)  # and base types, pointers, references
OPEN = (TAG_LEXICAL_BLOCK, TAG_INLINED, TAG_ENTRY_POINT)  # variables in it are as if they stood around it
SCOPES = (TAG_SUBPROGRAM, TAG_NAMESPACE, TAG_MODULE, TAG_COMMON_BLOCK)
TYPES = (*RECORDS, TAG_ENUMERATION, TAG_TYPEDEF)

# DW_AT
AT_SIBLING, AT_LOCATION, AT_DECLARATION = 0x01, 0x02, 0x3C

AT_NAME, AT_DECL_FILE, AT_DECL_LINE, AT_EXTERNAL, AT_TYPE = 0x03, 0x3A, 0x3B, 0x3F, 0x49
AT_LINKAGE_NAME, AT_BYTE_SIZE, AT_SIGNATURE = 0x6E, 0x0B, 0x69
ELSEWHERE = (0x31, AT_DECLARATION, 0x47, 0x2007)  # abstract_origin, specification; the old linkage name
WANTED = (AT_NAME, AT_LINKAGE_NAME, AT_DECL_FILE, AT_DECL_LINE, AT_TYPE, AT_EXTERNAL)

# DW_FORM (DWARF 5, table 7.6): struct's letters for those of a fixed size
FIXED = {
    0x05: "H", 0x06: "I", 0x07: "Q", 0x0B: "B", 0x0C: "B", 0x11: "B", 0x12: "H", 0x13: "I", 0x14: "Q", 0x1C: "I",
    0x1E: "16s", 0x20: "Q", 0x24: "Q", 0x25: "B", 0x26: "H", 0x27: "3s", 0x28: "I", 0x29: "B", 0x2A: "H", 0x2B: "3s",
    0x2C: "I",
}  # fmt: skip
OF_SECTION = (0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)  # offsets in sections: 4 or 8 bytes
LEB128 = (0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
COUNTED = {0x03: "H", 0x04: "I", 0x0A: "B"}  # blocks whose length has a fixed size
FORM_ADDRESS, FORM_STRING, FORM_BLOCK, FORM_EXPRESSION = 0x01, 0x08, 0x09, 0x18
FORM_FLAG, FORM_STRP, STRINGS, NUMBERS = 0x0C, 0x0E, (0x08, 0x0E), (0x05, 0x06, 0x0B, 0x21)
UNSIGNED = (0x05, 0x06, 0x07, 0x0B, 0x0E)  # data2, data4, data8, data1; an offset in .debug_str
FORM_PRESENT, FORM_IMPLICIT, FORM_REFERENCE4 = 0x19, 0x21, 0x13

# DW_OP that a place in memory or in thread-local storage begins with: addr, constants, indices of addresses
SIBLING = struct.Struct("<I")
STATIC = frozenset((0x03, 0x08, 0x0A, 0x0C, 0x0E, 0x10, 0xA1, 0xA2, 0xFB, 0xFC))


LETTER = re.compile(r"\d*[A-Za-z]")  # one of struct's


class UnreadableError(Exception):
    """The unit is not written as this module expects."""


@dataclass(frozen=True)
class Segment:
    """Attributes of fixed size, and the one of variable size that follows them, if one does."""

    codes: tuple[int, ...]
    form: struct.Struct
    last: int  # the attribute of variable size, 0: none
    last_form: int


@dataclass(frozen=True)
class Abbreviation:
    """How DIEs of one kind are written. `forms` has every attribute's; `constants` are values that it holds itself.

    `size`: of the attributes, where it is always the same, else -1. `location`: of variables and parameters, the bytes
    before the location's length, counted from the end of the inline name if one begins after `text` bytes; `after`:
    those behind the location. -1: that varies, or there is none. `sibling`: bytes before a reference to the next
    sibling, or -1.
    """

    tag: int
    has_children: bool
    forms: dict[int, int]
    constants: dict[int, int]
    segments: tuple[Segment, ...]
    size: int
    location: int
    text: int
    after: int
    sibling: int

    @cached_property
    def told(self) -> Optional[Told]:
        """How a variable's DIE says all that there is to say; None where something stands elsewhere, or unusually."""
        forms = self.forms
        if self.location < 0 or not self._is_plain():
            return None
        first, *more, last = self.segments
        if any(code in forms for code in ELSEWHERE) or any(code in WANTED for code in last.codes):
            return None
        codes = [*first.codes, *((AT_NAME, *more[0].codes) if self.text >= 0 else ()), *self.constants, *WANTED]
        missing = (None,) * len(WANTED)
        second = more[0].form if self.text >= 0 else None
        pick = itemgetter(*(codes.index(code) for code in WANTED))
        return Told(first.form, second, (*self.constants.values(), *missing), pick)

    def _is_plain(self) -> bool:
        """Whether what is wanted is of forms that need no look elsewhere."""
        forms = self.forms
        return (
            forms.get(AT_NAME) in STRINGS
            and forms.get(AT_LINKAGE_NAME, FORM_STRP) == FORM_STRP
            and forms.get(AT_TYPE, FORM_REFERENCE4) == FORM_REFERENCE4
            and all(forms[code] in NUMBERS for code in (AT_DECL_FILE, AT_DECL_LINE) if code in forms)
            and forms.get(AT_EXTERNAL, FORM_PRESENT) in (FORM_PRESENT, FORM_FLAG)
        )


class Told(NamedTuple):
    """The attributes before a location: those of fixed size, and, if an inline name follows them, those behind it."""

    first: struct.Struct
    second: Optional[struct.Struct]
    constants: tuple[Value, ...]  # of the abbreviation, and None for what is missing
    pick: Callable[[tuple[Value, ...]], tuple[Value, ...]]  # of all those what is `WANTED`


# A DIE: its level below the unit's, its offset in the section, where its attributes begin, and how it is written.
Entry = tuple[int, int, int, Abbreviation]


class UnitBytes:
    """One unit in the bytes of its section. Raises `UnreadableError`."""

    def __init__(self, module: Module, unit: Unit, section: Section) -> None:
        self._section = section
        self.data = section.data
        self.first = (unit.die.addr or 0) - section.address  # where the unit's own DIE is
        self.begin = self.first - module.offset_in_unit(unit.die)
        self._read_header()
        self._abbreviations = abbreviations(module, unit.die, self._letters())
        self._tables: dict[bool, Table] = {}

    def _read_header(self) -> None:
        """DWARF 5, 7.5.1; libdw has judged it already, but tells neither the end nor the size of offsets."""
        try:
            (length,) = struct.unpack_from("<I", self.data, self.begin)
            self._long = length == 0xFFFFFFFF
            at = self.begin + 4
            if self._long:
                (length,) = struct.unpack_from("<Q", self.data, at)
                at += 8
            (self._version,) = struct.unpack_from("<H", self.data, at)
            is_before = self._version >= 5
            self._address_size = self.data[at + 3 if is_before else at + 2 + (8 if self._long else 4)]
        except (struct.error, IndexError):
            raise UnreadableError from None
        self.end = at + length
        good = self.begin >= 0 and self.first < self.end <= len(self.data) and 2 <= self._version <= 5
        if not good or self._address_size != 8:
            raise UnreadableError

    def _letters(self) -> dict[int, str]:
        """struct's letters of the forms that have a fixed size in this unit."""
        offset = "Q" if self._long else "I"
        letters = {**FIXED, **dict.fromkeys(OF_SECTION, offset), FORM_ADDRESS: "Q"}
        if self._version == 2:
            letters[0x10] = "Q"  # DW_FORM_ref_addr was an address (DWARF 2, 7.5.4)
        return letters

    def address(self, at: int) -> int:
        """Where an offset of the section is in our memory: what libdw calls a DIE's address."""
        return self._section.address + at

    def entries(self, qualified: bool) -> Iterator[Entry]:
        """Static variables and the scopes they are in, in order; with `qualified` all that has a name in a scope."""
        if qualified not in self._tables:
            self._tables[qualified] = Table(self._abbreviations, qualified)
        try:
            yield from self._entries(self._tables[qualified])
        except (IndexError, ValueError, struct.error, KeyError):
            raise UnreadableError from None

    def _entries(self, table: Table) -> Iterator[Entry]:
        data, begin, end = self.data, self.begin, self.end
        passed, skipped, opened, known = table.passed, table.skipped, table.opened, table.abbreviations
        code, body = leb128(data, self.first)
        at, depth = self._behind(body, known[code]), 1
        if not known[code].has_children:
            return
        while at < end:
            code = data[at]
            step = passed.get(code)
            if step is not None:
                at += step
                continue
            if code == 0:
                at, depth = at + 1, depth - 1
                if depth == 0:
                    return
                continue
            step = skipped.get(code)
            if step is not None:
                sibling = begin + SIBLING.unpack_from(data, at + step)[0]
                if at < sibling <= end:
                    at = sibling
                    continue
            step = opened.get(code)
            if step is not None and depth < DEEPEST:
                at, depth = at + step, depth + 1
                continue
            body = at + 1
            if code > 127:
                code, body = leb128(data, at)
            found = known[code]
            if found.location >= 0:
                place = body + found.location
                if found.text >= 0:
                    place = data.index(0, body + found.text) + 1 + found.location
                length = data[place]
                if length < 128:
                    if length and data[place + 1] in STATIC and found.tag == TAG_VARIABLE:
                        yield depth, at, body, found
                    at = place + 1 + length + found.after
                    continue
            if table.is_told(found):
                yield depth, at, body, found
            at = self._behind(body, found)
            if found.has_children:
                if found.tag in table.entered and depth < DEEPEST:
                    depth += 1
                else:
                    at = self._behind_children(at, table)

    def _behind(self, body: int, found: Abbreviation) -> int:
        """Where the DIE's attributes end."""
        if found.size >= 0:
            return body + found.size
        data = self.data
        for one in found.segments:
            body += one.form.size
            if one.last_form == FORM_EXPRESSION and data[body] < 128:
                body += 1 + data[body]
            elif one.last:
                body = behind_value(data, body, one.last_form)
        return body

    def _behind_children(self, at: int, table: Table) -> int:
        data, depth = self.data, 1
        while depth:
            if at >= self.end:
                raise UnreadableError
            code, body = leb128(data, at)
            if code == 0:
                at, depth = body, depth - 1
                continue
            inner = table.abbreviations[code]
            at = self._behind(body, inner)
            depth += inner.has_children
        return at

    def variable(self, at: int, told: Told) -> tuple[Any, ...]:
        """What is `WANTED` of a variable whose attributes begin there, and its location; None for what is missing.

        It is one that `entries` gave: it was passed whole.
        """
        data = self.data
        values: tuple[Value, ...] = told.first.unpack_from(data, at)
        at += told.first.size
        if told.second is not None:
            end = data.index(0, at)
            values = (*values, data[at:end], *told.second.unpack_from(data, end + 1))
            at = end + 1 + told.second.size
        return (*told.pick(values + told.constants), data[at + 1 : at + 1 + data[at]])

    def size_told(self, at: int) -> Optional[int]:
        """The size of the type whose DIE is at an offset, where that says it plainly."""
        return self._number(self._sizes, at)

    def name_told(self, at: int) -> Optional[int]:
        """Where in .debug_str the name of the DIE at an offset is, if nothing is said of it elsewhere."""
        return self._number(self._names, at)

    def _number(self, places: dict[int, Place], at: int) -> Optional[int]:
        data = self.data
        place = places.get(data[at]) if self.first <= at < self.end else None
        if place is None or isinstance(place, int):
            return place
        try:
            return int(place[1].unpack_from(data, at + place[0])[0])
        except struct.error:
            return None

    @cached_property
    def _sizes(self) -> dict[int, Place]:
        kinds = {code: one for code, one in self._abbreviations.items() if one.tag in SIZED}
        return places_of(AT_BYTE_SIZE, kinds, (AT_SIGNATURE,))

    @cached_property
    def _names(self) -> dict[int, Place]:
        named = {code: one for code, one in self._abbreviations.items() if one.forms.get(AT_NAME) == FORM_STRP}
        return places_of(AT_NAME, named, ELSEWHERE)


def places_of(wanted: int, kinds: dict[int, Abbreviation], without: Sequence[int]) -> dict[int, Place]:
    """Where the attribute is in DIEs by their code: (bytes from the begin, form), or its value itself."""
    found: dict[int, Place] = {}
    for code, one in kinds.items():
        if code > 127 or any(other in one.forms for other in without):
            continue
        if wanted in one.constants:
            found[code] = one.constants[wanted]
        elif wanted in one.segments[0].codes and one.forms[wanted] in UNSIGNED:
            letters = LETTER.findall(one.segments[0].form.format)
            number = one.segments[0].codes.index(wanted)
            found[code] = 1 + struct.calcsize("<" + "".join(letters[:number])), struct.Struct("<" + letters[number])
    return found


class Table:
    """A unit's abbreviations by what is done about them, for one way of going through it."""

    def __init__(self, abbreviations: dict[int, Abbreviation], qualified: bool) -> None:
        self.abbreviations = abbreviations
        self._qualified = qualified
        self.entered = frozenset((*OPEN, *SCOPES, *(RECORDS if qualified else ())))
        quiet = {code: one for code, one in abbreviations.items() if code < 128 and not self.is_told(one)}
        fixed = {code: one for code, one in quiet.items() if one.size >= 0}
        # by code: bytes of DIEs without children; bytes before what says where those with children end; of those inside
        # which the next DIE is looked at too
        self.passed = {code: 1 + one.size for code, one in fixed.items() if not one.has_children}
        self.opened = {
            code: 1 + one.size for code, one in fixed.items() if one.has_children and one.tag in self.entered
        }
        self.skipped = {
            code: 1 + one.sibling
            for code, one in quiet.items()
            if one.has_children and one.sibling >= 0 and one.tag not in self.entered
        }

    def is_told(self, found: Abbreviation) -> bool:
        """Whether every DIE of the kind is told."""
        tag = found.tag
        if tag in (TAG_VARIABLE, TAG_MEMBER):
            if self._qualified and AT_DECLARATION in found.forms:
                return True
            return tag == TAG_VARIABLE and found.location < 0 and found.forms.get(AT_LOCATION) in BLOCK_FORMS
        return tag in SCOPES or (self._qualified and tag in TYPES)


# ---- values ----


def leb128(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and where it ends (DWARF 5, 7.6); `IndexError` behind the data."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise UnreadableError


def behind_value(data: bytes, at: int, form: int) -> int:
    """Where a value of a form of variable size ends."""
    if form in LEB128:
        return leb128(data, at)[1]
    if form == FORM_STRING:
        end = data.find(b"\0", at)
        if end < 0:
            raise UnreadableError
        return end + 1
    length, at = block_length(data, at, form)
    return at + length


def block_length(data: bytes, at: int, form: int) -> tuple[int, int]:
    if form in COUNTED:
        counted = struct.Struct("<" + COUNTED[form])
        return counted.unpack_from(data, at)[0], at + counted.size
    return leb128(data, at)


# ---- abbreviations ----


def abbreviations(module: Module, unit: Die, letters: dict[int, str]) -> dict[int, Abbreviation]:
    """All kinds of DIEs of a unit, by their code."""
    found = {}
    for code, tag, has_children, attributes in module.abbreviations(unit, MOST_ABBREVIATIONS):
        found[code] = abbreviation(tag, has_children, attributes, letters)
    return found


def abbreviation(
    tag: int, has_children: bool, attributes: list[tuple[int, int, int]], letters: dict[int, str]
) -> Abbreviation:
    """`attributes`: (code, form, the value if the form says that it stands here)."""
    constants: dict[int, int] = {}
    segments: list[Segment] = []
    codes: list[int] = []
    format_of_segment = "<"
    sibling = -1
    for code, form, constant in attributes:
        if form in (FORM_PRESENT, FORM_IMPLICIT):
            constants[code] = 1 if form == FORM_PRESENT else constant
            continue
        letter = letters.get(form)
        if letter is None:
            if form not in LEB128 and form not in COUNTED and form not in (FORM_STRING, FORM_BLOCK, FORM_EXPRESSION):
                raise UnreadableError
            segments.append(Segment(tuple(codes), struct.Struct(format_of_segment), code, form))
            codes, format_of_segment = [], "<"
            continue
        if not segments and code == AT_SIBLING and form == FORM_REFERENCE4:
            sibling = struct.calcsize(format_of_segment)
        codes.append(code)
        format_of_segment += letter
    segments.append(Segment(tuple(codes), struct.Struct(format_of_segment), 0, 0))
    size = segments[0].form.size if len(segments) == 1 else -1
    location, text = (
        where_location_is(segments) if tag in (TAG_VARIABLE, TAG_PARAMETER) and not has_children else (-1, -1)
    )
    forms = {code: form for code, form, _ in attributes}
    after = segments[-1].form.size
    return Abbreviation(tag, has_children, forms, constants, tuple(segments), size, location, text, after, sibling)


def where_location_is(segments: list[Segment]) -> tuple[int, int]:
    """`Abbreviation.location` and `.text`."""
    if len(segments) < 2 or (segments[-2].last, segments[-2].last_form) != (AT_LOCATION, FORM_EXPRESSION):
        return -1, -1
    if len(segments) == 2:
        return segments[0].form.size, -1
    if len(segments) == 3 and segments[0].last_form == FORM_STRING:
        return segments[1].form.size, segments[0].form.size
    return -1, -1
