"""Types and variables as debug information describes them: frozen facts that name one another by index.

Takes nothing and reads nothing; a sequence of types or variables may read what is asked for. Types refer to types by
their index in a `TypeTable`, because they form loops (a list's node points to its like); by value no type contains
itself, which the reader makes sure of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Protocol, TypeVar, Union

from pieglobalsfind.dwarf import constants as dw

VOID = 0  # the index of `void` in every table

# Base.encoding: DW_AT_encoding (DWARF 5, table 7.11) by the standard's names
ENCODINGS = {
    dw.DW_ATE_address: "address",
    dw.DW_ATE_boolean: "boolean",
    dw.DW_ATE_complex_float: "complex_float",
    dw.DW_ATE_float: "float",
    dw.DW_ATE_signed: "signed",
    dw.DW_ATE_signed_char: "signed_char",
    dw.DW_ATE_unsigned: "unsigned",
    dw.DW_ATE_unsigned_char: "unsigned_char",
    dw.DW_ATE_imaginary_float: "imaginary_float",
    dw.DW_ATE_decimal_float: "decimal_float",
    dw.DW_ATE_UTF: "UTF",
}

# Variable.storage
GLOBAL = "global"
FILE_STATIC = "file static"
FUNCTION_STATIC = "function static"
THREAD_LOCAL = "thread-local"
ROOT = "gathered"  # a struct of globals that the program keeps itself
COMMON = "common"
MODULE = "module"


@dataclass(frozen=True)
class Expression:
    """A DWARF expression, to be computed for one object (DW_OP_push_object_address)."""

    code: bytes


# A bound, count or stride: a number, an expression on the object, or unknown.
Bound = Union[int, Expression, None]


@dataclass(frozen=True)
class Void:
    """No type at all: what `void *` points to, or what the reader refused (`reason`)."""

    name: str = "void"
    size: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Base:
    """A number, character or truth value; `encoding` is one of `ENCODINGS`, or "encoding 0x80" of a compiler's own."""

    name: str
    size: int
    encoding: str


@dataclass(frozen=True)
class Pointer:
    """`kind` is "*", "&" or "&&"."""

    target: int
    size: int
    kind: str = "*"


@dataclass(frozen=True)
class MemberPointer:
    """A C++ pointer to member of class `container`.

    To a function it is a pair: {function, or vtable offset + 1; adjustment} (Itanium C++ ABI, 2.3).
    """

    target: int
    container: int
    size: int


@dataclass(frozen=True)
class Member:
    """A member or base class (`is_base`). A bit field has `bit_size`, and `bit_offset` from the struct's first bit.

    Of a virtual base class `location` computes the address from the object's (DWARF 5, 5.7.7); `offset` says nothing.
    `alignment` is what the program asks for beyond the type's, in bytes.
    """

    name: str
    type: int
    offset: int
    bit_size: int = 0
    bit_offset: int = 0
    is_base: bool = False
    location: Optional[Expression] = None
    alignment: int = 1


@dataclass(frozen=True)
class Struct:
    """`kind` is "struct", "class" or "union". With `opaque`, it is only declared.

    `arguments` are the types that a template was made of, `alignment` what the program asks for beyond its members'.
    """

    kind: str
    name: str
    size: int
    members: tuple[Member, ...]
    opaque: bool = False
    arguments: tuple[int, ...] = ()
    alignment: int = 1


@dataclass(frozen=True)
class Dimension:
    """One dimension: its lowest index, its count of elements, and the stride in bytes when it is not dense."""

    lower: Bound
    count: Bound
    upper: Bound = None
    stride: Bound = None


@dataclass(frozen=True)
class Array:
    """`dimensions` as declared; in Fortran (`column_major`) the first varies fastest.

    With `data_location` the object is a descriptor and the elements lie where the expression says; `allocated` and
    `associated` say whether there are any. `size` is that of the object itself.
    """

    element: int
    dimensions: tuple[Dimension, ...]
    size: int
    column_major: bool = False
    data_location: Optional[Expression] = None
    allocated: Optional[Expression] = None
    associated: Optional[Expression] = None
    vector: bool = False


@dataclass(frozen=True)
class CharacterType:
    """A Fortran CHARACTER of `size` bytes; of a deferred length, which is at the vaddr `length_at`, `size` is 0."""

    size: int
    length_at: Optional[int] = None


@dataclass(frozen=True)
class Enumerator:
    """A name of an enumeration, and its value."""

    name: str
    value: int


@dataclass(frozen=True)
class Enum:
    """An enumeration (DW_TAG_enumeration_type)."""

    name: str
    size: int
    enumerators: tuple[Enumerator, ...]
    signed: bool = False


@dataclass(frozen=True)
class Typedef:
    """Another name of a type (DW_TAG_typedef). `alignment` is what the program asks for beyond the type's, in bytes."""

    name: str
    target: int
    alignment: int = 1


@dataclass(frozen=True)
class Qualified:
    """`qualifier` is "const", "volatile", "restrict" or "_Atomic"."""

    qualifier: str
    target: int


@dataclass(frozen=True)
class Function:
    """The type of a function (DW_TAG_subroutine_type)."""

    result: int
    parameters: tuple[int, ...]
    variadic: bool = False


# What is left when typedefs and qualifiers are taken off.
Bare = Union[Void, Base, Pointer, MemberPointer, Struct, Array, CharacterType, Enum, Function]
Type = Union[Bare, Typedef, Qualified]


def by_value(outer: Type) -> tuple[int, ...]:
    """The types whose bytes lie within an object of this type."""
    if isinstance(outer, Struct):
        return tuple(member.type for member in outer.members)
    if isinstance(outer, Array):
        return (outer.element,)
    return (outer.target,) if isinstance(outer, (Typedef, Qualified)) else ()


def named_by(outer: Type) -> tuple[int, ...]:
    """All types that this one is made of or points to."""
    if isinstance(outer, Pointer):
        return (outer.target,)
    if isinstance(outer, MemberPointer):
        return outer.target, outer.container
    if isinstance(outer, Struct):
        return *by_value(outer), *outer.arguments
    return (outer.result, *outer.parameters) if isinstance(outer, Function) else by_value(outer)


Place = Optional[tuple[int, int]]  # offset and type of a member
MOST_LEVELS = 50  # of base classes
Kept = TypeVar("Kept")


class Types(Protocol):
    """Types by index: a tuple, or a reader."""

    def __getitem__(self, index: int, /) -> Type: ...


@dataclass(frozen=True)
class TypeTable:
    """The types of a file's variables. Indices stay valid for the table's life; 0 is void."""

    types: Types
    _bare: dict[int, Bare] = field(default_factory=dict, init=False, repr=False, compare=False)
    _places: dict[tuple[int, str], Place] = field(default_factory=dict, init=False, repr=False, compare=False)
    _paths: dict[tuple[int, tuple[str, ...]], Optional[tuple[int, int, int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, index: int) -> Type:
        return self.types[index]

    def strip(self, index: int) -> Bare:
        """The type under typedefs and qualifiers."""
        stripped = self._bare.get(index)
        if stripped is not None:
            return stripped
        bare = self.types[index]
        while isinstance(bare, (Typedef, Qualified)):
            bare = self.types[bare.target]
        self._bare[index] = bare
        return bare

    def kept(self, make: Callable[[TypeTable, int], Kept], index: int) -> Kept:
        """What a pure function makes of a type, made once."""
        key = make, index
        if key not in self._kept:
            self._kept[key] = make(self, index)
        value: Kept = self._kept[key]
        return value

    def __reduce__(self) -> tuple[type[TypeTable], tuple[Types]]:
        return TypeTable, (self.types,)

    def place(self, index: int, name: str, depth: int = 0) -> Place:
        """Offset and type of a member of a class or of its base classes, None if it has none of that name."""
        key = index, name
        if key not in self._places:
            self._places[key] = self._search(index, name, depth)
        return self._places[key]

    def path(self, index: int, names: tuple[str, ...]) -> Optional[tuple[int, int, int]]:
        """Offset, type and size of a member of a member; None if a name is not there."""
        key = index, names
        if key not in self._paths:
            offset = 0
            place: Place = (0, index)
            for name in names:
                place = self.place(place[1], name) if place is not None else None
                offset += place[0] if place is not None else 0
            self._paths[key] = None if place is None else (offset, place[1], self.size(place[1]))
        return self._paths[key]

    def _search(self, index: int, name: str, depth: int) -> Place:
        bare = self.strip(index)
        members = [member for member in bare.members if member.location is None] if isinstance(bare, Struct) else []
        for member in members:
            if member.name == name and not member.is_base:
                return member.offset, member.type
        for member in members:
            if (member.is_base or not member.name) and depth < MOST_LEVELS:
                inner = self.place(member.type, name, depth + 1)
                if inner is not None:
                    return member.offset + inner[0], inner[1]
        return None

    def size(self, index: int) -> int:
        """Size in bytes of an object of this type; 0 for functions, void and arrays of unknown length."""
        bare = self.strip(index)
        return 0 if isinstance(bare, Function) else bare.size


class Variable(NamedTuple):  # a dataclass takes five times as long to make, and there are tens of thousands
    """A variable of static storage.

    `name` is as the language writes it (qualified in C++, `module::name` in Fortran, `function::name` for a function's
    static). `address` is the vaddr in its file. It is None for a thread-local variable, which has `tls_offset` in its
    module's block instead, and for a struct of globals: its rank published the address. `block` names the Fortran
    common block. `file` is as DWARF names it; `size` is in bytes.
    """

    name: str
    linkage_name: str
    file: str
    line: int
    type: int
    size: int
    storage: str
    language: str
    address: Optional[int]
    tls_offset: Optional[int] = None
    function: str = ""
    block: str = ""


@dataclass(frozen=True)
class Variables:
    """What one ELF file declares: variables in ascending order of place, thread-local ones first, and their types.

    `starts` are the variables' addresses, 0 for thread-local ones.
    """

    variables: Sequence[Variable]
    types: TypeTable
    starts: Sequence[int] = ()

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)
