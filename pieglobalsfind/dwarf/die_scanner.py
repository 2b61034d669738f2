"""Runs through a unit's DIEs as bytes and stops only where variables of static storage, or what names them, can be.

Takes a unit of an opened `Module`; gives entries: where a DIE is, what kind it is, and its attributes when asked for.
Most DIEs are locals, parameters and members: they are passed over by their abbreviation's size, ten times as fast as a
library can be asked about each. Unusual or damaged encodings raise `UnreadableError` and are left to libdw.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter, mul
from typing import Any, Callable, NamedTuple, Optional, TypeVar, Union

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.constants import RECORDS
from pieglobalsfind.dwarf.die_walk import DEEPEST
from pieglobalsfind.dwarf.forms import (
    BLOCK_FORMS,
    COUNTED,
    FIXED,
    LEB128,
    OF_SECTION,
    UnreadableError,
    behind_value,
    leb128,
)
from pieglobalsfind.dwarf.libdw import Die, DwarfSection, Module, Unit

Value = Union[int, bytes, None]
Place = tuple[int, Optional[Callable[[bytes, int], tuple[Any, ...]]]]
Of = TypeVar("Of")

MOST_ABBREVIATIONS = 100_000  # of one unit
MOST_IN_ALL = 2_000_000  # of all units; those that say the same are counted once

SIZED = (
    *RECORDS,
    dw.DW_TAG_enumeration_type,
    dw.DW_TAG_base_type,
    dw.DW_TAG_pointer_type,
    dw.DW_TAG_reference_type,
    dw.DW_TAG_rvalue_reference_type,
)
# variables in these are as if they stood around them
OPEN = (dw.DW_TAG_lexical_block, dw.DW_TAG_inlined_subroutine, dw.DW_TAG_entry_point)
SCOPES = (dw.DW_TAG_subprogram, dw.DW_TAG_namespace, dw.DW_TAG_module, dw.DW_TAG_common_block)
TYPES = (*RECORDS, dw.DW_TAG_enumeration_type, dw.DW_TAG_typedef)

ELSEWHERE = (dw.DW_AT_abstract_origin, dw.DW_AT_declaration, dw.DW_AT_specification, dw.DW_AT_MIPS_linkage_name)
WANTED = (
    dw.DW_AT_name,
    dw.DW_AT_linkage_name,
    dw.DW_AT_decl_file,
    dw.DW_AT_decl_line,
    dw.DW_AT_type,
    dw.DW_AT_external,
)

STRINGS = (dw.DW_FORM_string, dw.DW_FORM_strp)
NUMBERS = (dw.DW_FORM_data2, dw.DW_FORM_data4, dw.DW_FORM_data1, dw.DW_FORM_implicit_const)
# offsets in .debug_str too
UNSIGNED = (dw.DW_FORM_data2, dw.DW_FORM_data4, dw.DW_FORM_data8, dw.DW_FORM_data1, dw.DW_FORM_strp)

# a location of one address: its length, DW_OP_addr, the address; and what stands for these among attributes' codes
LOCATION, ADDRESS_LENGTH = "BBQ", 9
LENGTH, OPERATION, ADDRESS = -1, -2, -3

# what a place in memory or in thread-local storage begins with: an address, a constant, an index of one
STATIC = frozenset(
    (
        dw.DW_OP_addr,
        dw.DW_OP_const1u,
        dw.DW_OP_const2u,
        dw.DW_OP_const4u,
        dw.DW_OP_const8u,
        dw.DW_OP_constu,
        dw.DW_OP_addrx,
        dw.DW_OP_constx,
        dw.DW_OP_GNU_addr_index,
        dw.DW_OP_GNU_const_index,
    )
)

SIBLING = struct.Struct("<I")
LETTER = re.compile(r"\d*[A-Za-z]")  # one of struct's


@dataclass(frozen=True)
class AttributeRun:
    """Attributes of fixed size, and the one of variable size that follows them, if one does."""

    codes: tuple[int, ...]
    form: struct.Struct
    last: int  # the attribute of variable size, 0: none
    last_form: int


@dataclass(frozen=True, eq=False)
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
    segments: tuple[AttributeRun, ...]
    size: int
    location: int
    text: int
    after: int
    sibling: int

    @cached_property
    def told(self) -> Optional[AttributeLayout]:
        """How a variable's DIE says all that there is to say; None where something stands elsewhere, or unusually."""
        forms = self.forms
        if self.location < 0 or not self._is_plain():
            return None
        first, *more, last = self.segments
        if any(code in forms for code in ELSEWHERE) or any(code in WANTED for code in last.codes):
            return None
        behind_text = (first.last, *more[0].codes) if more else ()
        codes = [*first.codes, *behind_text, LENGTH, OPERATION, ADDRESS, *self.constants, *WANTED]
        *forms_before, form = (attribute_run.form for attribute_run in (first, *more))
        pick = itemgetter(*(codes.index(code) for code in WANTED))
        constants = (*self.constants.values(), *(None for _ in WANTED))
        return AttributeLayout(
            forms_before[0] if forms_before else None, struct.Struct(form.format + LOCATION), constants, pick
        )

    def _is_plain(self) -> bool:
        """Whether what is wanted is of forms that need no look elsewhere."""
        forms = self.forms
        return (
            forms.get(dw.DW_AT_name) in STRINGS
            and forms.get(dw.DW_AT_linkage_name, dw.DW_FORM_strp) == dw.DW_FORM_strp
            and forms.get(dw.DW_AT_type, dw.DW_FORM_ref4) == dw.DW_FORM_ref4
            and all(forms[code] in NUMBERS for code in (dw.DW_AT_decl_file, dw.DW_AT_decl_line) if code in forms)
            and forms.get(dw.DW_AT_external, dw.DW_FORM_flag_present) in (dw.DW_FORM_flag_present, dw.DW_FORM_flag)
        )


class AttributeLayout(NamedTuple):
    """The attributes up to a location of one address: those before an inline name, if there is one, and the others."""

    before_text: Optional[struct.Struct]
    form: struct.Struct
    constants: tuple[Value, ...]  # of the abbreviation, and None for what is missing
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]]  # of all those what is `WANTED`


# A DIE: the lowest level since the last one, its own below the unit's, its offset in the section, how it is written,
# and how a variable is that tells all.
Entry = tuple[int, int, int, Abbreviation, Optional[AttributeLayout]]
# `text`, `location` and `after` of an abbreviation, itself, and what its DIEs tell if its code is of one byte.
Located = tuple[int, int, int, Abbreviation, Optional[AttributeLayout]]


class Kinds:
    """A table of abbreviations, and what was made of it: in a program of many type units, these all share one."""

    def __init__(self, abbreviations: dict[int, Abbreviation]) -> None:
        self.abbreviations = abbreviations
        self._tables: dict[bool, AbbreviationTable] = {}

    def table(self, qualified: bool) -> AbbreviationTable:
        """Return the unit's abbreviations for one way of scanning."""
        if qualified not in self._tables:
            self._tables[qualified] = AbbreviationTable(self.abbreviations, qualified)
        return self._tables[qualified]

    @cached_property
    def sizes(self) -> list[Optional[Place]]:
        """Where DIEs say the size of a type."""
        sized = {code: one for code, one in self.abbreviations.items() if one.tag in SIZED}
        return places_of(dw.DW_AT_byte_size, sized, (dw.DW_AT_signature,))

    @cached_property
    def names(self) -> list[Optional[Place]]:
        """Where DIEs say their names, of those in .debug_str."""
        named = {
            code: one for code, one in self.abbreviations.items() if one.forms.get(dw.DW_AT_name) == dw.DW_FORM_strp
        }
        return places_of(dw.DW_AT_name, named, ELSEWHERE)


class KnownKinds:
    """The tables of abbreviations of one file, each read once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[tuple[int, ...], Kinds] = {}
        self._count = 0

    def of(self, unit: Die, place: tuple[int, ...], letters: dict[int, str]) -> Kinds:
        """Those of a unit, by where its header says that they are, and how values are written in it."""
        if place not in self._known:
            if self._count > MOST_IN_ALL:
                raise UnreadableError
            self._known[place] = Kinds(abbreviations(self._module, unit, letters))
            self._count += len(self._known[place].abbreviations)
        return self._known[place]


class UnitBytes:
    """One unit in the bytes of its section. Raises `UnreadableError`."""

    def __init__(self, module: Module, unit: Unit, section: DwarfSection, known_kinds: KnownKinds) -> None:
        self._section = section
        self.data = section.data
        self.first = (unit.die.addr or 0) - section.address  # where the unit's own DIE is
        self.begin = self.first - module.offset_in_unit(unit.die)
        self._read_header()
        place = section.address, self._abbreviations_at, self._long, self._version == 2
        self._kinds = known_kinds.of(unit.die, place, self._letters())

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
            offset = struct.Struct("<Q" if self._long else "<I")
            self._address_size = self.data[at + 3 if is_before else at + 2 + offset.size]
            (self._abbreviations_at,) = offset.unpack_from(self.data, at + 4 if is_before else at + 2)
        except (struct.error, IndexError):
            raise UnreadableError from None
        self.end = at + length
        good = self.begin >= 0 and self.first < self.end <= len(self.data) and 2 <= self._version <= 5
        if not good or self._address_size != 8:
            raise UnreadableError

    def _letters(self) -> dict[int, str]:
        """struct's letters of the forms that have a fixed size in this unit."""
        offset = "Q" if self._long else "I"
        letters = {**FIXED, **dict.fromkeys(OF_SECTION, offset), dw.DW_FORM_addr: "Q"}
        if self._version == 2:
            letters[dw.DW_FORM_ref_addr] = "Q"  # it was an address (DWARF 2, 7.5.4)
        return letters

    def address(self, at: int) -> int:
        """Where an offset of the section is in our memory: what libdw calls a DIE's address."""
        return self._section.address + at

    def entries(self, qualified: bool) -> Iterator[Entry]:
        """Static variables and the scopes they are in, in order; with `qualified` all that has a name in a scope.

        Blocks are skipped. Before each depth therefore comes the lowest since the last: what was deeper has ended.
        """
        table, begin = self._kinds.table(qualified), self.begin
        # what ends children, behind the last DIE, as often as there can be need of it: no end has to be looked for
        data = self.data[begin : self.end] + bytes(DEEPEST + 1)
        passed, skipped, located, opened = table.passed, table.skipped, table.located, table.opened
        before_location, behind_location = table.before_location, table.behind_location
        far, known, sibling_at, zero_from = table.far, table.abbreviations, SIBLING.unpack_from, data.index
        try:
            code, body = leb128(data, self.first - begin)
            at, depth, lowest = self._behind(data, body, known[code]), 1, DEEPEST
            if not known[code].has_children:
                return
            while True:
                code = data[at]
                step = before_location[code]
                if step:  # what there is most of is asked for first
                    place = at + step
                    length = data[place]
                    if data[place + 1] not in STATIC and length < 128:
                        at = place + length + behind_location[code]
                        continue
                step = skipped[code]
                if step:
                    (sibling,) = sibling_at(data, at + step)
                    if sibling > at:
                        at = sibling
                        continue
                step = passed[code]
                if step:
                    at += step
                    continue
                if code == 0:
                    at, depth = at + 1, depth - 1
                    if depth < lowest:
                        if depth == 0:
                            return
                        lowest = depth
                    continue
                step = opened[code]
                if step and depth < DEEPEST:
                    at, depth = at + step, depth + 1
                    continue
                body, one = at + 1, located[code]
                if code > 127:
                    code, body = leb128(data, at)
                    one = far.get(code)
                if one is not None:
                    text, location, after, found, told = one
                    place = location + (zero_from(0, body + text) + 1 if text >= 0 else body)
                    length = data[place]
                    if length < 128:
                        if length and data[place + 1] in STATIC and found.tag == dw.DW_TAG_variable:
                            yield lowest, depth, begin + at, found, told
                            lowest = DEEPEST
                        at = place + 1 + length + after
                        continue
                found = known[code]
                if table.is_told(found):
                    yield lowest, depth, begin + at, found, None
                    lowest = DEEPEST
                at = self._behind(data, body, found)
                if found.has_children:
                    if found.tag in table.entered and depth < DEEPEST:
                        depth += 1
                        continue
                    at = self._behind_children(data, at, table)
                lowest = min(lowest, depth)
        except (IndexError, ValueError, struct.error, KeyError):
            raise UnreadableError from None

    def _behind(self, data: bytes, body: int, found: Abbreviation) -> int:
        """Where the DIE's attributes end."""
        if found.size >= 0:
            return body + found.size
        for segment in found.segments:
            body += segment.form.size
            if segment.last_form == dw.DW_FORM_exprloc and data[body] < 128:
                body += 1 + data[body]
            elif segment.last:
                body = behind_value(data, body, segment.last_form)
        return body

    def _behind_children(self, data: bytes, at: int, table: AbbreviationTable) -> int:
        depth = 1
        while depth:
            code, body = leb128(data, at)
            if code == 0:
                at, depth = body, depth - 1
                continue
            inner = table.abbreviations[code]
            at = self._behind(data, body, inner)
            depth += inner.has_children
        return at

    def columns(self, places: Sequence[int], told: AttributeLayout) -> tuple[Sequence[Any], ...]:
        """Of variables whose DIEs begin there, `WANTED` one by one, and the address; None for what is missing.

        The address is 0 where the location is more than an address.
        """
        data, unpack, before = self.data, told.form.unpack_from, told.before_text
        try:
            if before is None:
                rows = [unpack(data, at + 1) for at in places]
            else:
                texts = [at + 1 + before.size for at in places]
                ends = [data.index(0, at) for at in texts]
                rows = [
                    (*before.unpack_from(data, at + 1), data[text:end], *unpack(data, end + 1))
                    for at, text, end in zip(places, texts, ends)
                ]
        except (struct.error, ValueError):  # the section ends with a shorter location
            return (*([None] * len(places) for _ in WANTED), [0] * len(places))
        read = tuple(zip(*rows))
        lengths, operations, addresses = read[-3:]
        if set(lengths) != {ADDRESS_LENGTH} or set(operations) != {dw.DW_OP_addr}:
            is_plain = map((ADDRESS_LENGTH, dw.DW_OP_addr).__eq__, zip(lengths, operations))
            addresses = tuple(map(mul, addresses, is_plain))
        return (*told.pick((*read, *([constant] * len(places) for constant in told.constants))), addresses)

    def sizes_told(self, distances: Iterable[int]) -> list[Optional[int]]:
        """Of types whose DIEs are so far from the unit's begin: their sizes, where those say them plainly."""
        return numbers_told(self.data, self.begin, distances, self._kinds.sizes)

    def names_told(self, distances: Iterable[int]) -> list[Optional[int]]:
        """Where in .debug_str the names of DIEs are, of each that no other DIE describes."""
        return numbers_told(self.data, self.begin, distances, self._kinds.names)


def numbers_told(
    data: bytes, begin: int, distances: Iterable[int], kinds: list[Optional[Place]]
) -> list[Optional[int]]:
    """A number of each DIE, by where those of its kind have it; None where they have none."""
    told: list[Optional[int]] = []
    add = told.append
    for distance in distances:
        at = begin + distance
        place = kinds[data[at]]
        if place is None:
            add(None)
            continue
        more, read = place
        try:
            add(read(data, at + more)[0] if read is not None else more)
        except struct.error:
            add(None)
    return told


def places_of(wanted: int, kinds: dict[int, Abbreviation], without: Sequence[int]) -> list[Optional[Place]]:
    """By DIEs' code where the attribute is: (bytes from the begin, who reads it there), or (its value, None)."""
    found: dict[int, Place] = {}
    for code, one in kinds.items():
        if code > 127 or any(other in one.forms for other in without):
            continue
        if wanted in one.constants:
            found[code] = one.constants[wanted], None
        elif wanted in one.segments[0].codes and one.forms[wanted] in UNSIGNED:
            letters = LETTER.findall(one.segments[0].form.format)
            number = one.segments[0].codes.index(wanted)
            reader = struct.Struct("<" + letters[number]).unpack_from
            found[code] = 1 + struct.calcsize("<" + "".join(letters[:number])), reader
    return by_code(found, None)


class AbbreviationTable:
    """A unit's abbreviations by what is done about them, for one way of going through it."""

    def __init__(self, abbreviations: dict[int, Abbreviation], qualified: bool) -> None:
        self.abbreviations = abbreviations
        self._qualified = qualified
        self.entered = frozenset((*OPEN, *SCOPES, *(RECORDS if qualified else ())))
        quiet = {code: one for code, one in abbreviations.items() if code < 128 and not self.is_told(one)}
        fixed = {code: one for code, one in quiet.items() if one.size >= 0}
        entered = {code: one for code, one in quiet.items() if one.has_children and one.tag in self.entered}
        skipped = {code: one for code, one in quiet.items() if one.has_children and code not in entered}
        # bytes, 0 for other codes: of DIEs without children; before what says where those with children end; of those
        # inside which the next DIE is looked at too
        self.passed = by_code({code: 1 + one.size for code, one in fixed.items() if not one.has_children}, 0)
        self.skipped = by_code({code: 1 + one.sibling for code, one in skipped.items() if one.sibling >= 0}, 0)
        self.opened = by_code({code: 1 + one.size for code, one in entered.items() if one.size >= 0}, 0)
        placed = {code: one for code, one in abbreviations.items() if one.location >= 0}
        near = {code: located(one, one.told) for code, one in placed.items() if code < 128}
        self.located: list[Optional[Located]] = by_code(near, None)
        # bytes, 0 for other codes: before a location that no inline name is before; of its length, and after it
        fixed_before = {code: one for code, one in placed.items() if code < 128 and one.text < 0}
        self.before_location = by_code({code: 1 + one.location for code, one in fixed_before.items()}, 0)
        self.behind_location = by_code({code: 1 + one.after for code, one in fixed_before.items()}, 0)
        self.far = {code: located(one, None) for code, one in placed.items() if code > 127}

    def is_told(self, found: Abbreviation) -> bool:
        """Whether every DIE of the kind is kept."""
        tag = found.tag
        if tag in (dw.DW_TAG_variable, dw.DW_TAG_member):
            if self._qualified and dw.DW_AT_declaration in found.forms:
                return True
            return (
                tag == dw.DW_TAG_variable and found.location < 0 and found.forms.get(dw.DW_AT_location) in BLOCK_FORMS
            )
        return tag in SCOPES or (self._qualified and tag in TYPES)


def located(found: Abbreviation, told: Optional[AttributeLayout]) -> Located:
    """Return what the scan keeps of a variable's DIE."""
    return found.text, found.location, found.after, found, told


def by_code(found: Mapping[int, Of], otherwise: Of) -> list[Of]:
    """What there is for each byte that a DIE may begin with: its code, if it is less than 128."""
    return [*(found.get(code, otherwise) for code in range(128)), *[otherwise] * 128]


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
    segments: list[AttributeRun] = []
    codes: list[int] = []
    format_of_segment = "<"
    sibling = -1
    for code, form, constant in attributes:
        if form in (dw.DW_FORM_flag_present, dw.DW_FORM_implicit_const):
            constants[code] = 1 if form == dw.DW_FORM_flag_present else constant
            continue
        letter = letters.get(form)
        if letter is None:
            if (
                form not in LEB128
                and form not in COUNTED
                and form not in (dw.DW_FORM_string, dw.DW_FORM_block, dw.DW_FORM_exprloc)
            ):
                raise UnreadableError
            segments.append(AttributeRun(tuple(codes), struct.Struct(format_of_segment), code, form))
            codes, format_of_segment = [], "<"
            continue
        if not segments and code == dw.DW_AT_sibling and form == dw.DW_FORM_ref4:
            sibling = struct.calcsize(format_of_segment)
        codes.append(code)
        format_of_segment += letter
    segments.append(AttributeRun(tuple(codes), struct.Struct(format_of_segment), 0, 0))
    size = segments[0].form.size if len(segments) == 1 else -1
    location, text = (
        where_location_is(segments)
        if tag in (dw.DW_TAG_variable, dw.DW_TAG_formal_parameter) and not has_children
        else (-1, -1)
    )
    forms = {code: form for code, form, _ in attributes}
    after = segments[-1].form.size
    return Abbreviation(tag, has_children, forms, constants, tuple(segments), size, location, text, after, sibling)


def where_location_is(segments: list[AttributeRun]) -> tuple[int, int]:
    """`Abbreviation.location` and `.text`."""
    if len(segments) < 2 or (segments[-2].last, segments[-2].last_form) != (dw.DW_AT_location, dw.DW_FORM_exprloc):
        return -1, -1
    if len(segments) == 2:
        return segments[0].form.size, -1
    if len(segments) == 3 and segments[0].last_form == dw.DW_FORM_string:
        return segments[1].form.size, segments[0].form.size
    return -1, -1
