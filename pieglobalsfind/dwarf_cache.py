"""Variables and types of a file, kept per build-id so that the second question needs no DWARF.

Takes a path and a build-id; writes and reads JSON through the index. Whatever it finds in a cache that is not what it
wrote, it ignores.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pieglobalsfind import dwarf_types as kinds
from pieglobalsfind.dwarf import DebugInfo
from pieglobalsfind.dwarf_types import Expression, Type, TypeTable, Variable, Variables
from pieglobalsfind.index import load, store

KIND = "variables-1"  # changes with the form of what is stored

_CLASSES: dict[str, Any] = {
    name: getattr(kinds, name)
    for name in [
        "Void",
        "Base",
        "Pointer",
        "MemberPointer",
        "Member",
        "Struct",
        "Dimension",
        "Array",
        "Text",
        "Enumerator",
        "Enum",
        "Typedef",
        "Qualified",
        "Function",
    ]
}


def declared(path: str, build_id: bytes) -> Variables:
    """What the ELF file `path` declares; raises `ObjectFileError` if it can't be opened."""
    stored = load(build_id, KIND) if build_id else None
    if stored is not None:
        try:
            return decode(stored)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            pass  # a damaged cache is no cache
    information = DebugInfo.open(path)
    try:
        found = information.declared
        if build_id and information.is_there:
            store(build_id, KIND, encode(found))
        return found
    finally:
        information.close()


def encode(found: Variables) -> bytes:
    """As JSON: every dataclass is a list of its name and its fields."""
    content = {
        "types": [plain(one) for one in found.types.types],
        "variables": [list(vars(one).values()) for one in found.variables],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode(stored: bytes) -> Variables:
    """The reverse of `encode`; raises one of the usual errors on anything else."""
    content = json.loads(stored)
    types: tuple[Type, ...] = tuple(rich(one) for one in content["types"])
    variables = tuple(Variable(*one) for one in content["variables"])
    check(types, variables)
    return Variables(variables, TypeTable(types))


def plain(value: Any) -> Any:
    if isinstance(value, Expression):
        return ["x", value.code.hex()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(one) for one in vars(value).values())]
    return ["", *(plain(one) for one in value)] if isinstance(value, tuple) else value


def rich(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    head, *rest = value
    if head == "x":
        return Expression(bytes.fromhex(rest[0]))
    fields = tuple(rich(one) for one in rest)
    return _CLASSES[head](*fields) if head else fields


def check(types: tuple[Type, ...], variables: tuple[Variable, ...]) -> None:
    """Indices must name types, or the cache is not ours."""
    for variable in variables:
        types[variable.type]
        if not isinstance(variable.size, int) or not isinstance(variable.name, str):
            raise ValueError("not a variable")
