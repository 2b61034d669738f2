"""Tells whether a value's type is self-contained: GDB can print it without another rank's symbols.

Takes a type; looks into its members. GDB has the symbols of one rank at a time: a static member, or what a
pretty-printer looks up by an address, would be that rank's.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, Optional

import gdb

REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
AGGREGATES = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
DEEPEST = 20  # types in types that are followed
MOST_TYPES = 1_000
LIBRARY = "libstdc++-v6"
PRINTERS = ("builtin", LIBRARY, "ranklens_texts")
# Of libstdc++'s printers, those that follow pointers to data alone.
CONTAINERS = re.compile(
    r"std::(?:__cxx11::)?(?:basic_string|vector|list|forward_list|deque|array|map|multimap|set|multiset|unordered_map|"
    r"unordered_multimap|unordered_set|unordered_multiset|pair|unique_ptr|optional|complex)<"
)
POLICIES = tuple(
    f"std::{name}<" for name in ("allocator", "less", "greater", "hash", "equal_to", "char_traits", "default_delete")
)
PERMITTED = {"print address": True, "print symbol": True, "print object": False, "print vtbl": False}


def is_plain_gdb() -> bool:
    """Whether the user has changed nothing that makes printing look at more."""
    if any(bool(gdb.parameter(name)) != value for name, value in PERMITTED.items()):
        return False
    return all(name_of(printer) in PRINTERS for printer in printers())


def bare_type(type_: gdb.Type) -> gdb.Type:
    """Return a type without typedefs, const and volatile."""
    return type_.strip_typedefs().unqualified()


def printers() -> Iterator[object]:
    """All that GDB asks."""
    places: tuple[Any, ...] = (gdb, gdb.current_progspace(), *gdb.objfiles())
    for place in places:
        yield from place.pretty_printers


def name_of(printer: object) -> str:
    """Of a pretty-printer, or of a collection of them."""
    return str(getattr(printer, "name", "") or getattr(printer, "__name__", ""))


def is_self_contained(type_: Optional[gdb.Type], depth: int = 0) -> bool:
    """Whether a value of a type tells itself, addresses' names apart."""
    if type_ is None:  # a member function
        return True
    bare = bare_type(type_)
    while bare.code == gdb.TYPE_CODE_ARRAY:
        bare = bare_type(bare.target())
    if bare.code not in AGGREGATES:
        return True
    if depth > DEEPEST or bare.dynamic:
        return False
    if str(bare.name).startswith(("std::", "__gnu_cxx::")):
        is_shown_by_library = any(
            name_of(printer) == LIBRARY and getattr(printer, "enabled", True) for printer in printers()
        )
        is_container = is_shown_by_library and CONTAINERS.match(str(bare.name)) is not None
        return is_container and all(is_self_contained(kind, depth + 1) for kind in arguments(bare))
    return all(hasattr(field, "bitpos") and is_self_contained(field.type, depth + 1) for field in bare.fields())


def arguments(type_: gdb.Type) -> list[gdb.Type]:
    """The types of what a container holds: what only says how it does so has no data to show."""
    texts = []
    for at in range(DEEPEST):
        try:
            argument = type_.template_argument(at)
        except (gdb.error, RuntimeError):
            break
        if isinstance(argument, gdb.Type) and not is_policy(argument):
            texts.append(argument)
    return texts


def is_policy(type_: gdb.Type) -> bool:
    """An allocator, a comparison, or something else of the library that is empty."""
    return str(bare_type(type_).name).startswith(POLICIES)


def may_select_static(types: Iterable[gdb.Type], members: Container[str]) -> bool:
    """Whether one of the members is a static one of a class that can be come to from values of these types."""
    waiting: list[Optional[gdb.Type]] = list(types)
    met: set[str] = set()
    while waiting:
        kind = waiting.pop()
        if kind is None:  # of a member function
            continue
        bare = bare_type(kind)
        while bare.code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_PTR, *REFERENCES):
            bare = bare_type(bare.target())
        if bare.code not in AGGREGATES or str(bare) in met:
            continue
        met.add(str(bare))
        if len(met) > MOST_TYPES or any(
            not hasattr(field, "bitpos") and field.name in members for field in bare.fields()
        ):
            return True
        waiting += [field.type for field in bare.fields()]
    return False
