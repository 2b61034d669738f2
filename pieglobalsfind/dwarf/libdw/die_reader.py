"""Units, and their DIEs attribute by attribute, through libdw.

Takes units of a module; knows what an attribute's form means and nothing of types or variables. It never trusts a
sibling that points backwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_bool, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.libdw.bindings import (
    Attribute,
    Block,
    Die,
    Operation,
    inline_text,
    library,
    section_places,
    text,
)

LONGEST_BLOCK = 4096  # bytes of a DWARF expression; real ones have a few dozen
# how values of attributes are written (DWARF 5, 7.5.6)
SIGNED_FORMS = (dw.DW_FORM_sdata, dw.DW_FORM_implicit_const)
BLOCK_FORMS = (dw.DW_FORM_block2, dw.DW_FORM_block4, dw.DW_FORM_block, dw.DW_FORM_block1, dw.DW_FORM_exprloc)
REFERENCE_FORMS = (
    dw.DW_FORM_ref_addr,
    dw.DW_FORM_ref1,
    dw.DW_FORM_ref2,
    dw.DW_FORM_ref4,
    dw.DW_FORM_ref8,
    dw.DW_FORM_ref_udata,
    dw.DW_FORM_ref_sup4,
    dw.DW_FORM_ref_sig8,
    dw.DW_FORM_ref_sup8,
    dw.DW_FORM_GNU_ref_alt,
)
# operations whose operand is an index, and what they mean once that is looked up
INDEXED = {
    dw.DW_OP_addrx: dw.DW_OP_addr,
    dw.DW_OP_GNU_addr_index: dw.DW_OP_addr,
    dw.DW_OP_constx: dw.DW_OP_const8u,
    dw.DW_OP_GNU_const_index: dw.DW_OP_const8u,
}


@dataclass(frozen=True)
class Unit:
    """A unit's DIE; for a split unit `die` is the full one of the .dwo file, and `skeleton` the object file's."""

    die: Die
    skeleton: Die
    holds_type: bool = False
    is_skeleton: bool = False


class Reader:
    """Reads DIEs of one opened file: every method is one question about one DIE."""

    def __init__(self) -> None:
        self.lib = library()
        self._attribute = Attribute()
        # millions of calls: what they need is looked up once (a structure passes for a pointer to it)
        self._tag, self._following = self.lib.dwarf_tag, self.lib.dwarf_siblingof
        self._own, self._inherited = self.lib.dwarf_attr, self.lib.dwarf_attr_integrate
        self._section = (0, 0)  # where the one is that had the last inline string

    def tag(self, die: Die) -> int:
        """Return a DIE's tag."""
        return int(self._tag(die))

    def offset(self, die: Die) -> int:
        """Where the DIE is in its section, in bytes."""
        return int(self.lib.dwarf_dieoffset(die))

    def die_at(self, unit: Die, offset: int) -> Optional[Die]:
        """The DIE at an offset in the section of a unit; None if there can't be one."""
        die = Die()
        return die if self.lib.dwarf_offdie(self.lib.dwarf_cu_getdwarf(unit.cu), offset, die) else None

    def children(self, die: Die) -> Iterator[Die]:
        """The DIE's children in order. Stops where a damaged file would lead backwards."""
        following, child = self._following, Die()
        if self.lib.dwarf_child(die, child) != 0:
            return
        address = child.addr or 0
        while True:
            yield child
            sibling = Die()
            if following(child, sibling) != 0:
                return
            child, before = sibling, address
            address = sibling.addr or 0
            if address <= before:
                return

    def has(self, die: Die, code: int) -> bool:
        """Return whether a DIE itself has an attribute."""
        return bool(self._own(die, code, self._attribute))

    def _find(self, die: Die, code: int, inherited: bool = False) -> Optional[Attribute]:
        find = self._inherited if inherited else self._own
        return self._attribute if find(die, code, self._attribute) else None

    def string(self, die: Die, code: int) -> str:
        """A string attribute, of the DIE or of what it specifies or was made from; "" without one."""
        attribute = self._find(die, code, inherited=True)
        return self._text(attribute) if attribute is not None else ""

    def own_string(self, die: Die, code: int) -> str:
        """Return a DIE's own string attribute, or ""."""
        attribute = self._find(die, code)
        return self._text(attribute) if attribute is not None else ""

    def _text(self, attribute: Attribute) -> str:
        """libdw has seen to the end of strings in string sections, not of those in a DIE."""
        address = self.lib.dwarf_formstring(byref(attribute))
        if attribute.form != dw.DW_FORM_string or not address:
            return text(address)
        if not self._section[0] <= address < self._section[1]:
            places = section_places(self.lib.dwarf_cu_getdwarf(attribute.cu))
            around = (place for place in places if place[0] <= address < sum(place))
            start, size = next(around, (address, 0))
            self._section = start, start + size
        return inline_text(address, self._section[1])

    def flag(self, die: Die, code: int) -> bool:
        """Return whether a DIE, or what it refers to, has a flag set."""
        attribute = self._find(die, code, inherited=True)
        value = c_bool()
        return attribute is not None and self.lib.dwarf_formflag(byref(attribute), byref(value)) == 0 and value.value

    def number(self, die: Die, code: int) -> Optional[int]:
        """A constant attribute; negative where its form says so (DWARF 5, 7.5.5). None without one."""
        attribute = self._find(die, code)
        if attribute is None or attribute.form in BLOCK_FORMS or attribute.form in REFERENCE_FORMS:
            return None
        if attribute.form in SIGNED_FORMS:
            signed = ctypes.c_int64()
            return signed.value if self.lib.dwarf_formsdata(byref(attribute), byref(signed)) == 0 else None
        value = c_uint64()
        return value.value if self.lib.dwarf_formudata(byref(attribute), byref(value)) == 0 else None

    def block(self, die: Die, code: int) -> Optional[bytes]:
        """A block or expression attribute as bytes, or None (also when it is absurdly long)."""
        attribute = self._find(die, code)
        block = Block()
        if (
            attribute is None
            or attribute.form not in BLOCK_FORMS
            or self.lib.dwarf_formblock(byref(attribute), byref(block))
        ):
            return None
        return ctypes.string_at(block.data, block.length) if block.data and block.length <= LONGEST_BLOCK else None

    def reference(self, die: Die, code: int, inherited: bool = False) -> Optional[Die]:
        """The DIE that a reference attribute names (any unit, type units and supplementary files included)."""
        attribute = self._find(die, code, inherited)
        named = Die()
        if attribute is None or not self.lib.dwarf_formref_die(byref(attribute), byref(named)):
            return None
        return named

    def location(self, die: Die) -> tuple[tuple[int, int], ...]:
        """DW_AT_location as (operation, operand); indexed addresses and constants (split units) resolved."""
        attribute = self._find(die, dw.DW_AT_location)
        if attribute is None:
            return ()
        operations, count = POINTER(Operation)(), c_size_t()
        if self.lib.dwarf_getlocation(byref(attribute), byref(operations), byref(count)) != 0 or count.value > 16:
            return ()
        return tuple(self.operand(attribute, operations[index]) for index in range(count.value))

    def operand(self, location: Attribute, operation: Operation) -> tuple[int, int]:
        """An operation with its first operand; an index into a table becomes what stands there."""
        if operation.atom not in INDEXED:
            return operation.atom, operation.number
        attribute, value = Attribute(), c_uint64()
        if self.lib.dwarf_getlocation_attr(byref(location), byref(operation), byref(attribute)) != 0:
            return 0, 0
        meant = INDEXED[operation.atom]
        read = self.lib.dwarf_formaddr if meant == dw.DW_OP_addr else self.lib.dwarf_formudata
        return (meant, value.value) if read(byref(attribute), byref(value)) == 0 else (0, 0)

    def declared_at(self, die: Die, units: dict[Optional[int], Unit]) -> tuple[str, int]:
        """DW_AT_decl_file as the line table names it, and DW_AT_decl_line; "" and 0 when unknown.

        Not by dwarf_decl_file(): it aborts the process when a unit's line table is missing (elfutils 0.188).
        """
        file, line = self._number_inherited(die, dw.DW_AT_decl_file), self._number_inherited(die, dw.DW_AT_decl_line)
        unit = units.get(file[1])
        return (self.file_name(unit, file[0]) if unit is not None else ""), line[0]

    def _number_inherited(self, die: Die, code: int) -> tuple[int, Optional[int]]:
        """An unsigned attribute and the unit (Dwarf_CU) in which it stands."""
        attribute, value = self._find(die, code, inherited=True), c_uint64()
        if attribute is None or self.lib.dwarf_formudata(byref(attribute), byref(value)) != 0:
            return 0, None
        return value.value, attribute.cu

    def file_name(self, unit: Unit, number: int) -> str:
        """A file of the unit's line table by its number, "" if there is none."""
        for die in (unit.die, unit.skeleton):
            files, count = c_void_p(), c_size_t()
            if die.addr and self.lib.dwarf_getsrcfiles(byref(die), byref(files), byref(count)) == 0:
                return text(self.lib.dwarf_filesrc(files, number, None, None)) if number < count.value else ""
        return ""

    def ranges(self, die: Die, limit: int = 100_000) -> Iterator[tuple[int, int]]:
        """The [low, high) address ranges of a unit or function."""
        base, low, high, offset = c_uint64(), c_uint64(), c_uint64(), 0
        for _ in range(limit):
            offset = self.lib.dwarf_ranges(byref(die), offset, byref(base), byref(low), byref(high))
            if offset <= 0:
                return
            yield low.value, high.value

    def language(self, unit: Die) -> int:
        """Return a unit's DW_LANG code."""
        return int(self.lib.dwarf_srclang(byref(unit)))
