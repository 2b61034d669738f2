"""Reads type DIEs when they are asked for, and nothing twice.

Takes DIEs of one file through a `Reader`; is what a `TypeTable` takes its types from. An index says where a type's DIE
is; it is read, with all that it holds by value, when it is asked for: no `PyObject *` drags in a whole program. It
never recurses, and breaks loops that damaged files hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Union

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.libdw.bindings import Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader, Unit
from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.nested_types import LARGEST_SIZE, MOST_LEVELS, settle
from pieglobalsfind.dwarf.types import (
    ENCODINGS,
    VOID,
    Array,
    Base,
    Bound,
    CharacterType,
    Dimension,
    Enum,
    Enumerator,
    Expression,
    Function,
    Member,
    MemberPointer,
    Pointer,
    Qualified,
    Struct,
    Type,
    Typedef,
    Void,
)
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent

MOST_TYPES = 1_000_000
MOST_PARTS = 3_000_000  # members, enumerators, parameters and dimensions of all types
MOST_DIMENSIONS = 100  # of one array
LARGEST_ALIGNMENT = 1 << 20  # bytes

QUALIFIERS = {
    dw.DW_TAG_const_type: "const",
    dw.DW_TAG_volatile_type: "volatile",
    dw.DW_TAG_restrict_type: "restrict",
    dw.DW_TAG_atomic_type: "_Atomic",
}
POINTERS = {dw.DW_TAG_pointer_type: "*", dw.DW_TAG_reference_type: "&", dw.DW_TAG_rvalue_reference_type: "&&"}
RECORDS = {
    dw.DW_TAG_class_type: "class",
    dw.DW_TAG_structure_type: "struct",
    dw.DW_TAG_union_type: "union",
    dw.DW_TAG_interface_type: "class",
}

UNREADABLE, OUTSIDE = 1, 2  # indices of what damaged files have
REFUSED: dict[int, Type] = {
    VOID: Void(),
    UNREADABLE: Void(reason="its offset is outside the types"),
    OUTSIDE: Void(reason="it lies outside the type that contains it"),
}

SIZED = (*RECORDS, dw.DW_TAG_enumeration_type, dw.DW_TAG_base_type, *POINTERS)
UNIT_SHIFT = 40  # an index: number of the unit, from 1 on, and the DIE's distance from the unit's own, in so many bits
FOREIGN = 1 << 62  # from here on: DIEs of other files (supplementary ones, units of types of split files)


class TypeReader:
    """The types of one file by index, which tells where the DIE is. The file stays open as long as this is in use."""

    def __init__(
        self,
        module: Module,
        units: Sequence[Unit],
        scope_of: Callable[[Die], str],
        is_fortran: Callable[[Die], bool],
    ) -> None:
        """`scope_of` gives the qualification of a named type ("app::"), `is_fortran` what the DIE's unit is."""
        self._module = module  # which closes when the last reference is gone
        self._units = units
        self._reader = Reader()
        self._scope_of = scope_of
        self._is_fortran = is_fortran
        self._types: dict[int, Type] = dict(REFUSED)
        self._levels: dict[int, int] = dict.fromkeys(self._types, 0)
        self._parts = 0
        self._numbers = {unit.die.cu: number for number, unit in enumerate(units)}
        self._foreign: dict[int, Die] = {}
        self._indices: dict[int, int] = {}  # of foreign ones by address
        self._fortran = False
        self._makers: dict[int, Callable[[Die, int], Type]] = {
            dw.DW_TAG_array_type: self._array,
            dw.DW_TAG_enumeration_type: self._enum,
            dw.DW_TAG_string_type: self._text,
            dw.DW_TAG_subroutine_type: self._function,
            dw.DW_TAG_typedef: self._typedef,
            dw.DW_TAG_ptr_to_member_type: self._member_pointer,
            dw.DW_TAG_base_type: self._base,
            dw.DW_TAG_unspecified_type: self._unspecified,
            **dict.fromkeys(QUALIFIERS, self._qualified),
            **dict.fromkeys(POINTERS, self._pointer),
        }

    def __getitem__(self, index: int) -> Type:
        if index not in self._levels:
            settle(index, self._types, self._levels, self._read_at)
        return self._types[index]

    def of(self, die: Die) -> int:
        """The index of the type that a DIE names by DW_AT_type."""
        return self._target(die)

    def stated_size(self, index: int) -> int:
        """The size in bytes that a type's own DIE states, without reading its members; 0 where it states none."""
        die = self._die(index) if index not in REFUSED else None
        return self._size(die) if die is not None and self._reader.tag(die) in SIZED else 0

    def parameters(self, die: Die) -> Iterator[int]:
        """The indices of the types of a function's parameters, but for those that the compiler added."""
        for child, _ in self.parts(die, dw.DW_TAG_formal_parameter):
            if not self._reader.flag(child, dw.DW_AT_artificial):
                yield self._target(child)

    def index(self, die: Die) -> int:
        """The index of the type that a DIE defines."""
        number = self._numbers.get(die.cu)
        if number is not None:
            distance = (die.addr or 0) - (self._units[number].die.addr or 0)
            return index_at(number, distance) if 0 <= distance < 1 << UNIT_SHIFT else UNREADABLE
        key = die.addr or 0
        if key not in self._indices:
            self._indices[key] = FOREIGN + len(self._foreign)
            self._foreign[self._indices[key]] = die
        return self._indices[key]

    def parts(self, die: Die, *tags: int) -> Iterator[tuple[Die, int]]:
        """The entries of these kinds within a DIE; in a damaged file, whose types may all hold the same, not all."""
        for child in self._reader.children(die):
            self._parts += 1
            if self._parts > MOST_PARTS:
                return
            tag = self._reader.tag(child)
            if tag in tags:
                yield child, tag

    def _target(self, die: Die, attribute: int = dw.DW_AT_type) -> int:
        named = self._reader.reference(die, attribute, inherited=True)
        return VOID if named is None else self.index(named)

    def _read_at(self, index: int) -> Type:
        if len(self._types) > MOST_TYPES or self._parts > MOST_PARTS:
            return Void(reason="there are too many types")
        die = self._die(index)
        self._fortran = self._is_fortran(die)
        return self._read(die)

    def _die(self, index: int) -> Die:
        if index in self._foreign:
            return self._foreign[index]
        number, distance = place_of(index)
        unit = self._units[number].die
        return Die(addr=(unit.addr or 0) + distance, cu=unit.cu)

    def _read(self, die: Die) -> Type:
        tag = self._reader.tag(die)
        if tag in RECORDS:
            return self._record(die, RECORDS[tag])
        maker = self._makers.get(tag)
        if maker is None:
            return Void(reason=f"debug information of kind {tag:#x} is not known")
        return maker(die, tag)

    def _size(self, die: Die) -> int:
        size = self._reader.number(die, dw.DW_AT_byte_size) or 0
        return size if 0 <= size <= LARGEST_SIZE else 0

    def _base(self, die: Die, tag: int) -> Type:
        encoding = self._reader.number(die, dw.DW_AT_encoding) or 0
        name = self._reader.own_string(die, dw.DW_AT_name)
        return Base(name, self._size(die), ENCODINGS.get(encoding, f"encoding {encoding:#x}"))

    def _unspecified(self, die: Die, tag: int) -> Type:
        name = self._reader.own_string(die, dw.DW_AT_name) or "void"
        # decltype(nullptr) has the size of a pointer (C++ [basic.fundamental]), though DWARF may not say it
        return Void(name, self._size(die) or (8 if "nullptr" in name else 0))

    def _pointer(self, die: Die, tag: int) -> Type:
        return Pointer(self._target(die), self._size(die) or 8, POINTERS[tag])

    def _member_pointer(self, die: Die, tag: int) -> Type:
        target = self._target(die)
        container = self._target(die, dw.DW_AT_containing_type)
        pointee = self._reader.reference(die, dw.DW_AT_type)
        to_function = pointee is not None and self._reader.tag(pointee) == dw.DW_TAG_subroutine_type
        return MemberPointer(target, container, self._size(die) or (16 if to_function else 8))

    def _qualified(self, die: Die, tag: int) -> Type:
        return Qualified(QUALIFIERS[tag], self._target(die))

    def _typedef(self, die: Die, tag: int) -> Type:
        return Typedef(self._scoped_name(die), self._target(die), self._alignment(die))

    def _scoped_name(self, die: Die) -> str:
        """Qualified; a type unit defines what a declaration in its namespace announces (DW_AT_specification)."""
        name = self._reader.string(die, dw.DW_AT_name)
        declared = self._reader.reference(die, dw.DW_AT_specification)
        prefix = self._scope_of(die) or (self._scope_of(declared) if declared is not None else "")
        return prefix + name if name else ""

    def _function(self, die: Die, tag: int) -> Type:
        variadic = any(self.parts(die, dw.DW_TAG_unspecified_parameters))
        return Function(self._target(die), tuple(self.parameters(die)), variadic)

    def _text(self, die: Die, tag: int) -> Type:
        block = self._reader.block(die, dw.DW_AT_string_length)
        is_address = block is not None and len(block) == 9 and block[0] == dw.DW_OP_addr
        return CharacterType(self._size(die), int.from_bytes(block[1:], "little") if block and is_address else None)

    def _enum(self, die: Die, tag: int) -> Type:
        die, name = self._defined(die)
        enumerators = tuple(
            Enumerator(
                self._reader.own_string(child, dw.DW_AT_name), self._reader.number(child, dw.DW_AT_const_value) or 0
            )
            for child, _ in self.parts(die, dw.DW_TAG_enumerator)
        )
        signed = any(enumerator.value < 0 for enumerator in enumerators)
        return Enum(name, self._size(die), enumerators, signed)

    def _array(self, die: Die, tag: int) -> Type:
        element = self._target(die)
        dimensions = tuple(
            self._dimension(child) for child, _ in islice(self.parts(die, dw.DW_TAG_subrange_type), MOST_DIMENSIONS)
        )
        if len(dimensions) == MOST_DIMENSIONS:
            return Void(reason="it is an array of too many dimensions")
        location, allocated, associated = (
            Expression(block) if (block := self._reader.block(die, attribute)) is not None else None
            for attribute in (dw.DW_AT_data_location, dw.DW_AT_allocated, dw.DW_AT_associated)
        )
        size, vector = self._size(die), self._reader.flag(die, dw.DW_AT_GNU_vector)
        return Array(element, dimensions, size, self._fortran, location, allocated, associated, vector)

    def _dimension(self, die: Die) -> Dimension:
        lower, upper = self._bound(die, dw.DW_AT_lower_bound), self._bound(die, dw.DW_AT_upper_bound)
        if lower is None and not self._reader.has(die, dw.DW_AT_lower_bound):
            lower = 1 if self._fortran else 0  # DW_AT_lower_bound's default by language (DWARF 5, table 7.17)
        count = self._bound(die, dw.DW_AT_count)
        if count is None and isinstance(lower, int) and isinstance(upper, int):
            count = max(0, wrapped(upper) - wrapped(lower) + 1)
        if isinstance(count, int) and count < 0:
            count = None
        return Dimension(lower, count, upper, self._bound(die, dw.DW_AT_byte_stride))

    def _bound(self, die: Die, attribute: int) -> Bound:
        number = self._reader.number(die, attribute)
        if number is not None:
            return wrapped(number)
        block = self._reader.block(die, attribute)
        return None if block is None else Expression(block)

    def _record(self, die: Die, kind: str) -> Type:
        die, name = self._defined(die)
        opaque = self._reader.has(die, dw.DW_AT_declaration)
        size = self._size(die)
        if opaque:
            return Struct(kind, name, size, (), opaque)
        members, arguments = self._inside(die, size)
        return Struct(kind, name, size, members, arguments=arguments, alignment=self._alignment(die))

    def _alignment(self, die: Die) -> int:
        return min(max(self._reader.number(die, dw.DW_AT_alignment) or 1, 1), LARGEST_ALIGNMENT)

    def _defined(self, die: Die) -> tuple[Die, str]:
        """The DIE that has the type, and its name: a declaration may stand for a type unit (DWARF 5, 3.1.4)."""
        name = self._scoped_name(die)
        signature = self._reader.reference(die, dw.DW_AT_signature)
        if signature is None or signature.addr == die.addr:
            return die, name
        return signature, name or self._scoped_name(signature)

    def _inside(self, die: Die, size: int) -> tuple[tuple[Member, ...], tuple[int, ...]]:
        """Members and base classes of a class of that size, and the types that its template was made of."""
        members, arguments = list[Member](), list[int]()
        tags = dw.DW_TAG_inheritance, dw.DW_TAG_member, dw.DW_TAG_template_type_parameter
        for child, tag in self.parts(die, *tags):
            if tag == dw.DW_TAG_template_type_parameter:
                arguments.append(self._target(child))
            elif tag == dw.DW_TAG_inheritance or not self._reader.has(child, dw.DW_AT_external):
                members.append(within(self._member(child, tag == dw.DW_TAG_inheritance), size))
        return tuple(members), tuple(arguments)

    def _member(self, die: Die, is_base: bool) -> Member:
        name, target = self._reader.own_string(die, dw.DW_AT_name), self._target(die)
        offset = self._member_offset(die)
        if isinstance(offset, Expression):
            return Member(name, target, 0, is_base=is_base, location=offset)
        bit_size = self._reader.number(die, dw.DW_AT_bit_size) or 0
        if not bit_size:
            return Member(name, target, offset, is_base=is_base, alignment=self._alignment(die))
        bit_offset = self._reader.number(die, dw.DW_AT_data_bit_offset)
        if bit_offset is None:
            bit_offset = offset * 8 + self._old_bit_offset(die, bit_size)
        return Member(name, target, bit_offset // 8, bit_size, bit_offset)

    def _member_offset(self, die: Die) -> Union[int, Expression]:
        """In bytes; DWARF 2 has an expression for every member, which is given the struct's address to add to."""
        number = self._reader.number(die, dw.DW_AT_data_member_location)
        block = self._reader.block(die, dw.DW_AT_data_member_location) if number is None else None
        if block is None:
            return number or 0
        offset = evaluate(Expression(block), 0, nothing, (MemoryUnreadable,), on_stack=True)
        return Expression(block) if isinstance(offset, Absent) else offset

    def _old_bit_offset(self, die: Die, bit_size: int) -> int:
        """DWARF 2 and 3 count bits from the storage unit's most significant end (DWARF 3, 5.6.6)."""
        from_top = self._reader.number(die, dw.DW_AT_bit_offset)
        if from_top is None:
            return 0
        storage = self._reader.number(die, dw.DW_AT_byte_size)
        if storage is None:
            declared = self._reader.reference(die, dw.DW_AT_type)
            for _ in range(MOST_LEVELS):
                if declared is None or self._reader.number(declared, dw.DW_AT_byte_size) is not None:
                    break
                declared = self._reader.reference(declared, dw.DW_AT_type)
            storage = self._size(declared) if declared is not None else 4
        return storage * 8 - wrapped(from_top) - bit_size


def nothing(address: int, size: int) -> bytes:
    """Reads what is nowhere: of an expression that needs memory the value is not known."""
    raise MemoryUnreadable(address, size)


def within(member: Member, size: int) -> Member:
    """A member of a struct of that size; the value of a bit field that ends after it can't be read."""
    begin, end = (member.bit_offset, member.bit_offset + member.bit_size) if member.bit_size else (0, 0)
    if 0 <= member.offset <= size and 0 <= begin <= end <= 8 * size and member.bit_size <= 128:
        return member
    return Member(member.name, OUTSIDE, 0, is_base=member.is_base)


def wrapped(number: int) -> int:
    """An unsigned 64-bit constant that stands for a negative one."""
    return number - (1 << 64) if number >= 1 << 63 else number


def index_at(unit: int, distance: int) -> int:
    """The index of the type whose DIE is so far from that of the file's unit of this number."""
    return (unit + 1) << UNIT_SHIFT | distance


def place_of(index: int) -> tuple[int, int]:
    """The reverse of `index_at`; the number of no unit for void, foreign types and what can't be read."""
    return (index >> UNIT_SHIFT) - 1, index & (1 << UNIT_SHIFT) - 1
