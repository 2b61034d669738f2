"""Reads values of class types again by their declared type, because LLDB 14's expressions may lose members.

Takes a result of `EvaluateExpression`. LLDB 14 copies a class of C++ into types of its own for the result, and may lose
members there: it prints `couple` as {first = 0} or not at all, in ordinary processes too. What a module itself says of
a variable or a type is right, so the value is read again by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import lldb

from lldbext.lldb_api.run_commands import version

FIRST_RIGHT = 16  # older ones than this have not been seen to keep members
RECORDS = (lldb.eTypeClassStruct, lldb.eTypeClassClass, lldb.eTypeClassUnion)
MOST_VARIABLES = 64  # of one name


def may_lose_members(value: Any) -> bool:
    """Whether a result is of a class, or of no type at all, and this LLDB is an old one."""
    if not 0 < version() < FIRST_RIGHT:
        return False
    kind = value.GetType().GetCanonicalType()
    while kind.GetTypeClass() == lldb.eTypeClassArray:
        kind = kind.GetArrayElementType().GetCanonicalType()
    return not kind.IsValid() or kind.GetTypeClass() in RECORDS


def as_declared(target: Any, expression: str, type_name: str, address: int) -> Optional[Any]:
    """The value at an address by its own variable, or by the one type of a name; None without either."""
    for variable in variables(target, expression.rpartition("::")[2]):
        if variable.GetLoadAddress() == address:
            return variable
    types = target.FindTypes(type_name)
    if len(types) != 1:
        return None
    place = lldb.SBAddress(address, target)
    value = target.CreateValueFromAddress(expression, place, types.GetTypeAtIndex(0)).GetStaticValue()
    return value if value.GetError().Success() and value.GetType().GetTypeClass() in RECORDS else None


def variables(target: Any, name: str) -> Iterator[Any]:
    """Yield the global variables of a name."""
    matches = target.FindGlobalVariables(name, MOST_VARIABLES)
    return (matches.GetValueAtIndex(index) for index in range(matches.GetSize()))
