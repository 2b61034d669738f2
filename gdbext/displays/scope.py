"""The block that an expression's local variables belong to, wherever the function's code lies.

Takes an expression and GDB's selected frame. GDB's own blocks end with the symbols of the rank that they are of; here a
block is known by its function and by how far from the function's first instruction it begins and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

import gdb

from gdbext.gdb_api.language import names_pattern
from gdbext.gdb_api.target import path_of

THIS = "this"  # by which C++ finds members


@dataclass(frozen=True)
class Scope:
    """A block: the name and file of its function, and its begin and end from the function's."""

    function: str
    file: str
    begin: int
    end: int


def scope_of(expression: str) -> Optional[Scope]:
    """The innermost block whose variables an expression names, in the selected frame; None if it names none."""
    names = {match["name"] for match in re.finditer(names_pattern(), expression) if match["name"]}
    for block in blocks():
        symbols = list(block)
        if any(symbol.name in names for symbol in symbols) or any(
            symbol.name == THIS and not names.isdisjoint(members(symbol.type)) for symbol in symbols
        ):
            return scope(block)
    return None


def is_selected(wanted: Scope) -> bool:
    """Whether the selected frame is in the block."""
    return any(scope(block) == wanted for block in blocks())


def blocks() -> Iterator[Any]:
    """Yield the blocks of functions that the selected frame is in, innermost first."""
    block: Any = None
    with suppress(gdb.error, RuntimeError):  # there is no frame, or no debug information
        block = gdb.selected_frame().block()
    while block is not None and not block.is_global and not block.is_static:
        yield block
        block = block.superblock


def scope(block: Any) -> Optional[Scope]:
    """Return what is known of a block wherever it lies; None outside functions."""
    owner = block
    while owner is not None and owner.function is None:
        owner = owner.superblock
    if owner is None:
        return None
    function = owner.function
    return Scope(function.linkage_name, path_of(function.symtab), block.start - owner.start, block.end - owner.start)


def members(pointer: gdb.Type) -> Iterator[str]:
    """Yield the names of the members that `this` leads to, those of bases included."""
    with suppress(gdb.error, TypeError):
        yield from fields(pointer.target().strip_typedefs())


def fields(kind: gdb.Type) -> Iterator[str]:
    """Yield the names of a class's members."""
    for field in kind.fields():
        if field.is_base_class and field.type is not None:
            yield from fields(field.type.strip_typedefs())
        elif field.name:
            yield field.name
