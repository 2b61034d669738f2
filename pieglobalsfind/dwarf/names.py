"""Names of types as the language writes them, and as GDB prints them.

Takes a `TypeTable`; gives text. C's declarators are built from the inside out. It never reads a file, and names no more
parts of a type than a reader would look at: in a damaged file a function may take many of its own type.
"""

from __future__ import annotations

from pieglobalsfind.dwarf.types import (
    Array,
    Base,
    Enum,
    Function,
    MemberPointer,
    Pointer,
    Qualified,
    Struct,
    Text,
    Type,
    Types,
    Void,
)

DEEPEST = 40  # levels of declarators that are spelled out; beyond, a damaged file loops
MOST_PARTS = 1000  # types that one name is made of
MOST_PARAMETERS = 200  # of a function that are spelled out


class Parts:
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
    types = Parts(types) if depth == 0 else types
    found = types[index]
    if depth > DEEPEST:
        return "..." + declarator
    if isinstance(found, Qualified):
        return qualified_name(types, found, language, declarator, depth)
    if isinstance(found, Pointer):
        inner = found.kind + declarator
        return type_name(types, found.target, language, in_parentheses(types, found.target, inner), depth + 1)
    if isinstance(found, MemberPointer):
        container = type_name(types, found.container, language, "", depth + 1)
        inner = in_parentheses(types, found.target, f"{container}::*{declarator}")
        return type_name(types, found.target, language, inner, depth + 1)
    if isinstance(found, Array):
        return array_name(types, found, language, declarator, depth)
    if isinstance(found, Function):
        inner = declarator + c_parameters(types, found, language, depth)
        return type_name(types, found.result, language, inner, depth + 1)
    return spaced(plain_name(found, language), declarator)


def spaced(name: str, declarator: str) -> str:
    """GDB's spacing: a blank before any declarator, `int *`, `int [4]`, `int (*)(void)`."""
    return f"{name} {declarator}" if declarator else name


def plain_name(found: object, language: str) -> str:
    """The name of a type that has one; C says `struct`, `union` and `enum` with it."""
    if isinstance(found, (Struct, Enum)):
        kind = found.kind if isinstance(found, Struct) else "enum"
        if not found.name:
            return f"{kind} {{...}}"
        return found.name if language == "C++" else f"{kind} {found.name}"
    if isinstance(found, Text):
        return f"character({found.size})"
    return str(getattr(found, "name", "")) or "?"


def in_parentheses(types: Types, target: int, declarator: str) -> str:
    """`*` binds less than `[]` and `()`: put it in parentheses before those."""
    found = types[target]
    for _ in range(DEEPEST):
        if not isinstance(found, Qualified):
            break
        found = types[found.target]
    return f"({declarator})" if isinstance(found, (Array, Function)) else declarator


def qualified_name(types: Types, found: Qualified, language: str, declarator: str, depth: int) -> str:
    """`const int`, but `int * const`: a qualifier follows the pointer it qualifies."""
    target = types[found.target]
    if isinstance(target, (Pointer, MemberPointer)):
        return type_name(types, found.target, language, f" {found.qualifier}{spaced_after(declarator)}", depth + 1)
    if isinstance(target, Array):
        return array_name(types, target, language, declarator, depth, found.qualifier)
    return f"{found.qualifier} " + type_name(types, found.target, language, declarator, depth + 1)


def array_name(types: Types, found: Array, language: str, declarator: str, depth: int, qualifier: str = "") -> str:
    """Qualifiers of an array are its elements' (C11 6.7.3p9): said once, whichever of them DWARF says."""
    element = types[found.element]
    if qualifier and not (isinstance(element, Qualified) and element.qualifier == qualifier):
        return f"{qualifier} " + type_name(types, found.element, language, declarator + c_dimensions(found), depth + 1)
    return type_name(types, found.element, language, declarator + c_dimensions(found), depth + 1)


def spaced_after(declarator: str) -> str:
    return f" {declarator}" if declarator and not declarator.startswith("[") else declarator


def c_dimensions(found: Array) -> str:
    if found.vector:
        return f" __attribute__ ((vector_size({found.dimensions[0].count if found.dimensions else '?'})))"
    return "".join(f"[{one.count if isinstance(one.count, int) else ''}]" for one in found.dimensions) or "[]"


def c_parameters(types: Types, found: Function, language: str, depth: int) -> str:
    names = [type_name(types, one, language, "", depth + 1) for one in found.parameters[:MOST_PARAMETERS]]
    names += ["..."] if found.variadic or len(found.parameters) > MOST_PARAMETERS else []
    return f"({', '.join(names) or 'void'})"


def fortran_name(types: Types, index: int, depth: int = 0) -> str:
    """`real(kind=8), allocatable (:,:)`, `integer(kind=4) (10)`, `Type field`."""
    found = types[index]
    if depth > DEEPEST:
        return "..."
    if isinstance(found, Array):
        element = fortran_name(types, found.element, depth + 1)
        kind = ", allocatable" if found.allocated is not None else ""
        return f"{element}{kind} ({','.join(fortran_bounds(found))})"
    if isinstance(found, Pointer):
        return f"PTR TO -> ( {fortran_name(types, found.target, depth + 1)} )"
    if isinstance(found, Qualified):
        return fortran_name(types, found.target, depth + 1)
    if isinstance(found, Function):
        return "PROCEDURE"
    if isinstance(found, Struct):
        return f"Type {found.name}"
    if isinstance(found, Text):
        return f"character*{found.size}"
    return found.name if isinstance(found, (Base, Void, Enum)) else plain_name(found, "Fortran")


def fortran_bounds(found: Array) -> list[str]:
    """`10` for 1:10, `0:9` for other lower bounds, `:` for what is only known at run time."""
    bounds = []
    for one in found.dimensions:
        if not isinstance(one.lower, int) or not isinstance(one.count, int):
            bounds.append(":")
        elif one.lower == 1:
            bounds.append(str(one.count))
        else:
            bounds.append(f"{one.lower}:{one.lower + one.count - 1}")
    return bounds
