"""Names of types as the language writes them, and as GDB prints them.

Takes a `TypeTable`; gives text. C's declarators are built from the inside out. It never reads a file, and names no more
parts of a type than a reader would look at: in a damaged file a function may take many of its own type.
"""

from __future__ import annotations

from pieglobalsfind.dwarf.types import (
    Array,
    Base,
    CharacterType,
    Enum,
    Function,
    MemberPointer,
    Pointer,
    Qualified,
    Struct,
    Type,
    Types,
    Void,
)

DEEPEST = 40  # levels of declarators that are spelled out; beyond, a damaged file loops
MOST_PARTS = 1000  # types that one name is made of
MOST_PARAMETERS = 200  # of a function that are spelled out


class NameParts:
    """The types that a name is made of, as many as are spelled out."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._left = MOST_PARTS

    def __getitem__(self, index: int) -> Type:
        self._left -= 1
        return self._types[index] if self._left >= 0 else Void("...")


def type_name(types: Types, index: int, language: str = "C", declarator: str = "", depth: int = 0) -> str:
    """The type as a declaration in `language` ("C", "C++", "Fortran"): `int (*)(double)`, `struct cell *[4]`."""
    if language == "Fortran":
        return fortran_name(types, index, depth)
    types = NameParts(types) if depth == 0 else types
    target_type = types[index]
    if depth > DEEPEST:
        return "..." + declarator
    if isinstance(target_type, Qualified):
        return qualified_name(types, target_type, language, declarator, depth)
    if isinstance(target_type, Pointer):
        inner = target_type.kind + declarator
        return type_name(
            types, target_type.target, language, in_parentheses(types, target_type.target, inner), depth + 1
        )
    if isinstance(target_type, MemberPointer):
        container = type_name(types, target_type.container, language, "", depth + 1)
        inner = in_parentheses(types, target_type.target, f"{container}::*{declarator}")
        return type_name(types, target_type.target, language, inner, depth + 1)
    if isinstance(target_type, Array):
        return array_name(types, target_type, language, declarator, depth)
    if isinstance(target_type, Function):
        inner = declarator + _c_parameters(types, target_type, language, depth)
        return type_name(types, target_type.result, language, inner, depth + 1)
    return spaced(plain_name(target_type, language), declarator)


def spaced(name: str, declarator: str) -> str:
    """GDB's spacing: a blank before any declarator, `int *`, `int [4]`, `int (*)(void)`."""
    return f"{name} {declarator}" if declarator else name


def plain_name(named: object, language: str) -> str:
    """The name of a type that has one; C says `struct`, `union` and `enum` with it."""
    if isinstance(named, (Struct, Enum)):
        kind = named.kind if isinstance(named, Struct) else "enum"
        if not named.name:
            return f"{kind} {{...}}"
        return named.name if language == "C++" else f"{kind} {named.name}"
    if isinstance(named, CharacterType):
        return "character(:)" if named.length_at is not None else f"character({named.size})"
    return str(getattr(named, "name", "")) or "?"


def in_parentheses(types: Types, target: int, declarator: str) -> str:
    """`*` binds less than `[]` and `()`: put it in parentheses before those."""
    target_type = types[target]
    for _ in range(DEEPEST):
        if not isinstance(target_type, Qualified):
            break
        target_type = types[target_type.target]
    return f"({declarator})" if isinstance(target_type, (Array, Function)) else declarator


def qualified_name(types: Types, qualified: Qualified, language: str, declarator: str, depth: int) -> str:
    """`const int`, but `int * const`: a qualifier follows the pointer it qualifies."""
    target = types[qualified.target]
    if isinstance(target, (Pointer, MemberPointer)):
        return type_name(
            types, qualified.target, language, f" {qualified.qualifier}{_spaced_after(declarator)}", depth + 1
        )
    if isinstance(target, Array):
        return array_name(types, target, language, declarator, depth, qualified.qualifier)
    return f"{qualified.qualifier} " + type_name(types, qualified.target, language, declarator, depth + 1)


def array_name(types: Types, array: Array, language: str, declarator: str, depth: int, qualifier: str = "") -> str:
    """Qualifiers of an array are its elements' (C11 6.7.3p9): said once, whichever of them DWARF says."""
    element = types[array.element]
    if qualifier and not (isinstance(element, Qualified) and element.qualifier == qualifier):
        return f"{qualifier} " + type_name(types, array.element, language, declarator + _c_dimensions(array), depth + 1)
    return type_name(types, array.element, language, declarator + _c_dimensions(array), depth + 1)


def _spaced_after(declarator: str) -> str:
    return f" {declarator}" if declarator and not declarator.startswith("[") else declarator


def _c_dimensions(array: Array) -> str:
    if array.vector:
        return f" __attribute__ ((vector_size({array.dimensions[0].count if array.dimensions else '?'})))"
    return (
        "".join(f"[{dimension.count if isinstance(dimension.count, int) else ''}]" for dimension in array.dimensions)
        or "[]"
    )


def _c_parameters(types: Types, function: Function, language: str, depth: int) -> str:
    names = [
        type_name(types, parameter, language, "", depth + 1) for parameter in function.parameters[:MOST_PARAMETERS]
    ]
    names += ["..."] if function.variadic or len(function.parameters) > MOST_PARAMETERS else []
    return f"({', '.join(names) or 'void'})"


def fortran_name(types: Types, index: int, depth: int = 0) -> str:
    """`real(kind=8), allocatable (:,:)`, `integer(kind=4) (10)`, `Type field`."""
    named = types[index]
    if depth > DEEPEST:
        return "..."
    if isinstance(named, Array):
        element = fortran_name(types, named.element, depth + 1)
        kind = ", allocatable" if named.allocated is not None else ""
        return f"{element}{kind} ({','.join(fortran_bounds(named))})"
    if isinstance(named, Pointer):
        return f"PTR TO -> ( {fortran_name(types, named.target, depth + 1)} )"
    if isinstance(named, Qualified):
        return fortran_name(types, named.target, depth + 1)
    if isinstance(named, Function):
        return "PROCEDURE"
    if isinstance(named, Struct):
        return f"Type {named.name}"
    if isinstance(named, CharacterType):
        return "character*(:)" if named.length_at is not None else f"character*{named.size}"
    return named.name if isinstance(named, (Base, Void, Enum)) else plain_name(named, "Fortran")


def fortran_bounds(array: Array) -> list[str]:
    """`10` for 1:10, `0:9` for other lower bounds, `:` for what is only known at run time."""
    bounds = []
    for dimension in array.dimensions:
        if not isinstance(dimension.lower, int) or not isinstance(dimension.count, int):
            bounds.append(":")
        elif dimension.lower == 1:
            bounds.append(str(dimension.count))
        else:
            bounds.append(f"{dimension.lower}:{dimension.lower + dimension.count - 1}")
    return bounds
