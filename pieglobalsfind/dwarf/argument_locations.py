"""Where the arguments of the calls at one pc are: locations now and at entry, and what call sites say of them.

Takes an opened `CodeFile`; gives expressions as DWARF has them (DWARF 5, 2.5, 2.6 and 3.4), about p_vaddr's of the
file, so they serve all copies of it. It computes nothing: that needs a frame (stacks/frame_values.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_size_t, c_uint64
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.cfi import CodeFile, without_parameters
from pieglobalsfind.dwarf.expression import MASK
from pieglobalsfind.dwarf.libdw.bindings import Attribute, Die, Operation
from pieglobalsfind.dwarf.libdw.die_walk import walk
from pieglobalsfind.elf.demangle import demangle

CALL_SITES = (dw.DW_TAG_call_site, dw.DW_TAG_GNU_call_site)  # and the GNU forerunner
CALL_PARAMETERS = (dw.DW_TAG_call_site_parameter, dw.DW_TAG_GNU_call_site_parameter)
QUALIFIERS = (dw.DW_TAG_typedef, dw.DW_TAG_const_type, dw.DW_TAG_volatile_type, dw.DW_TAG_restrict_type)
ADDRESSES = (dw.DW_TAG_pointer_type, dw.DW_TAG_reference_type, dw.DW_TAG_rvalue_reference_type)
CALL_VALUES = (dw.DW_AT_call_value, dw.DW_AT_GNU_call_site_value)
CALL_DATA_VALUES = (dw.DW_AT_call_data_value, dw.DW_AT_GNU_call_site_data_value)
ENTRY_VALUES = (dw.DW_OP_entry_value, dw.DW_OP_GNU_entry_value)
MOST_OPERATIONS, DEEPEST = 32, 200


@dataclass(frozen=True)
class Step:
    """One operation of an expression; `inner` is the expression of an entry value. Atom 0: an unknown operation."""

    atom: int
    number: int = 0
    second: int = 0
    inner: tuple[Step, ...] = ()


Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Parameter:
    """Where an argument is at a pc: () means nowhere. `entry_register`: the one that held it at the call, if any did.

    `constant`: its value, the same in all calls (a number in 8 bytes, or as many bytes as the value has). `is_address`:
    its type is a pointer or a reference; what Fortran passes by reference may be described as what that leads to.
    """

    now: Steps
    entry_register: Optional[int]
    constant: Optional[bytes] = None
    is_address: bool = False


@dataclass(frozen=True)
class Passed:
    """What a call site says of an argument in a register: its value, and whether it says what a reference means."""

    value: Steps
    has_data: bool


@dataclass(frozen=True)
class ActiveCall:
    """One call that is active at a pc, by the names of its parameters."""

    parameters: dict[str, Parameter]


@dataclass(frozen=True)
class CallsAt:
    """The calls at a pc, inlined ones first; `frame_base` is the function's."""

    calls: tuple[ActiveCall, ...]
    frame_base: Steps


class ArgumentReader:
    """The arguments in one file; each place is read once."""

    def __init__(self, file: CodeFile) -> None:
        self._file = file
        self._reader = file.reader
        self._calls: dict[int, Optional[CallsAt]] = {}
        self._sites: dict[int, dict[int, Passed]] = {}
        self._callees: dict[int, frozenset[str]] = {}

    def calls(self, vaddr: int) -> Optional[CallsAt]:
        """The calls at an address, None without debug information."""
        if vaddr not in self._calls:
            self._calls[vaddr] = self._read_calls(vaddr)
        return self._calls[vaddr]

    def passed(self, return_address: int) -> dict[int, Passed]:
        """What the call that returns to an address passes, by register."""
        if return_address not in self._sites:
            self._sites[return_address] = self._read_site(return_address)
        return self._sites[return_address]

    def callees(self, return_address: int) -> frozenset[str]:
        """The names of the function that was called by the call before a return address; none where nothing tells.

        That function may have ended in a jump: then its frame is another function's, to which other values were passed.
        """
        if return_address not in self._callees:
            site = self._site(return_address)
            origin = self._origin(site) if site is not None else None
            self._callees[return_address] = frozenset(self._names(origin)) if origin is not None else frozenset()
        return self._callees[return_address]

    def _names(self, function: Die) -> Iterator[str]:
        linkage = self._reader.string(function, dw.DW_AT_linkage_name)
        if linkage.startswith("_Z"):
            yield without_parameters(demangle(linkage))
        elif linkage:
            yield linkage
        name = self._reader.string(function, dw.DW_AT_name)
        if name:
            yield name

    def _origin(self, site: Die) -> Optional[Die]:
        return self._reader.reference(site, dw.DW_AT_call_origin) or self._reader.reference(
            site, dw.DW_AT_abstract_origin
        )

    def _read_calls(self, vaddr: int) -> Optional[CallsAt]:
        dies = self._file.active(vaddr)
        if not dies:
            return None
        entry = next((low for low, _ in self._reader.ranges(dies[-1])), vaddr)
        base = self.expression(dies[-1], dw.DW_AT_frame_base, vaddr)
        return CallsAt(tuple(ActiveCall(dict(self._parameters(die, vaddr, entry))) for die in dies), base)

    def _parameters(self, function: Die, vaddr: int, entry: int) -> Iterator[tuple[str, Parameter]]:
        for die in self._reader.children(function):
            if self._reader.tag(die) == dw.DW_TAG_formal_parameter:
                at_entry = self.expression(die, dw.DW_AT_location, entry)
                is_register = len(at_entry) == 1 and dw.DW_OP_reg0 <= at_entry[0].atom < dw.DW_OP_reg0 + 32
                register = at_entry[0].atom - dw.DW_OP_reg0 if is_register else None
                now = self.expression(die, dw.DW_AT_location, vaddr)
                kind = self._kind(die)
                is_address = kind is not None and self._reader.tag(kind) in ADDRESSES
                parameter = Parameter(now, register, self._constant(die), is_address)
                yield self._reader.string(die, dw.DW_AT_name), parameter

    def _constant(self, die: Die) -> Optional[bytes]:
        number = self._reader.number(die, dw.DW_AT_const_value)
        if number is not None:
            return (number & MASK).to_bytes(8, "little")
        return self._reader.block(die, dw.DW_AT_const_value)

    def _kind(self, die: Die) -> Optional[Die]:
        """Its type without qualifiers."""
        kind = self._reader.reference(die, dw.DW_AT_type, inherited=True)
        for _ in range(DEEPEST):
            if kind is None or self._reader.tag(kind) not in QUALIFIERS:
                break
            kind = self._reader.reference(kind, dw.DW_AT_type)
        return kind

    # ---- call sites ----

    def _read_site(self, return_address: int) -> dict[int, Passed]:
        site = self._site(return_address)
        return dict(self._passed(site, return_address)) if site is not None else {}

    def _site(self, return_address: int) -> Optional[Die]:
        dies = self._file.active(return_address - 1)
        return self._site_in(dies[-1], return_address) if dies else None

    def _site_in(self, function: Die, return_address: int) -> Optional[Die]:
        for die, tag, _ in walk(self._reader, function, True, _holds_calls):
            if tag in CALL_SITES and self._returns_to(die, return_address):
                return die
        return None

    def _returns_to(self, site: Die, return_address: int) -> bool:
        return return_address in (self._address(site, dw.DW_AT_call_return_pc), self._address(site, dw.DW_AT_low_pc))

    def _passed(self, site: Die, return_address: int) -> Iterator[tuple[int, Passed]]:
        for die in self._reader.children(site):
            if self._reader.tag(die) in CALL_PARAMETERS:
                where = self.expression(die, dw.DW_AT_location, return_address)
                values = (self.expression(die, code, return_address) for code in CALL_VALUES)
                value = next((value for value in values if value), ())
                if value and len(where) == 1 and dw.DW_OP_reg0 <= where[0].atom < dw.DW_OP_reg0 + 32:
                    has_data = any(self._reader.has(die, code) for code in CALL_DATA_VALUES)
                    yield where[0].atom - dw.DW_OP_reg0, Passed(value, has_data)

    def _address(self, die: Die, code: int) -> Optional[int]:
        attribute, value = Attribute(), c_uint64()
        lib = self._reader.lib
        if not lib.dwarf_attr(die, code, attribute) or lib.dwarf_formaddr(byref(attribute), byref(value)) != 0:
            return None
        return value.value

    # ---- expressions ----

    def expression(self, die: Die, code: int, vaddr: int) -> Steps:
        """An attribute's expression at an address, () if there is none there."""
        attribute = Attribute()
        lib = self._reader.lib
        if not lib.dwarf_attr_integrate(die, code, attribute):
            return ()
        operations, count = POINTER(Operation)(), c_size_t()
        if lib.dwarf_getlocation_addr(byref(attribute), vaddr, byref(operations), byref(count), 1) != 1:
            return ()
        return self._steps(attribute, operations, count.value)

    def _steps(self, attribute: Attribute, operations: ctypes._Pointer[Operation], count: int) -> Steps:
        """Too long ones end in an unknown operation."""
        steps = [self._step(attribute, operations[index]) for index in range(min(count, MOST_OPERATIONS))]
        return (*steps, Step(0)) if count > MOST_OPERATIONS else tuple(steps)

    def _step(self, attribute: Attribute, operation: Operation) -> Step:
        lib, atom = self._reader.lib, operation.atom
        inner = Attribute()
        if atom in ENTRY_VALUES:
            operations, count = POINTER(Operation)(), c_size_t()
            if (
                lib.dwarf_getlocation_attr(byref(attribute), byref(operation), byref(inner)) != 0
                or lib.dwarf_getlocation(byref(inner), byref(operations), byref(count)) != 0
            ):
                return Step(0)
            return Step(ENTRY_VALUES[0], inner=self._steps(inner, operations, count.value))
        if atom == dw.DW_OP_implicit_value:
            return Step(0)
        resolved, number = self._reader.operand(attribute, operation)
        return Step(resolved, number, operation.number2)


def _holds_calls(die: Die, tag: int, around: bool) -> Optional[bool]:
    return True if tag in (dw.DW_TAG_lexical_block, dw.DW_TAG_inlined_subroutine) else None
