"""Rewrites an expression with addresses in place of variables, so that it means one rank whichever is in focus.

Takes an expression in the selected frame; gives one of C's or C++'s in which the address of each variable stands for
its name. Never reads another rank than the one whose symbols GDB has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

import gdb

from gdbext.gdb_api.language import IN_C, language, lookup, names_pattern

REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


@dataclass(frozen=True)
class ValuePlace:
    """Where a value lies, and how C spells it; `is_local`: only as long as a function runs."""

    address: int
    size: int
    text: str
    is_local: bool


def by_address(expression: str) -> Optional[str]:
    """`(*(long *) 0x2000808060a0) > 3` for `ticks > 3`; None if a variable of a function is in it, or no C."""
    if not names(expression):
        return expression
    if language() == "fortran":
        return None
    try:
        places = {name: place(name) for name in names(expression)}
    except gdb.error:
        return None
    if not all(value_place is not None and not value_place.is_local for value_place in places.values()):
        return None
    texts = {name: value_place.text for name, value_place in places.items() if value_place is not None}
    return re.sub(
        names_pattern(),
        lambda match: f"({texts[match['name']]})" if match["name"] in texts else match[0],
        expression,
    )


def part_of_variable(expression: str) -> Optional[ValuePlace]:
    """Where the variable, or the part of one, lies that an expression names; None if it names anything else."""
    places = names(expression)
    try:
        whole = place(places[0]) if len(places) == 1 else None
        part = place_of(expression, whole.is_local) if whole is not None else None
    except gdb.error:
        return None
    if whole is None or part is None:
        return None
    is_inside = whole.address <= part.address and part.address + part.size <= whole.address + whole.size
    return part if is_inside else None


def names(expression: str) -> list[str]:
    """The variables that an expression names, each once."""
    return list(dict.fromkeys(name for name in words(expression) if is_variable(name)))


def words(expression: str) -> Iterator[str]:
    """Yield the names in an expression."""
    for match in re.finditer(names_pattern(), expression):
        if match["name"]:
            yield match["name"]


def is_variable(name: str) -> bool:
    """Return whether a name is a variable's."""
    symbol, is_member = lookup(name)
    if symbol is None:
        return is_member or is_linkers(name)
    return bool(symbol.is_variable or symbol.is_argument)


def is_linkers(name: str) -> bool:
    """Whether it is known by the linker's table of symbols only, and no type or word of the language."""
    try:
        gdb.parse_and_eval(f"&{name}")
    except gdb.error:
        return False
    return True


def place(name: str) -> Optional[ValuePlace]:
    """Where a variable lies; None if nowhere in memory."""
    symbol, is_member = lookup(name)  # of `this`
    return place_of(name, is_member if symbol is None else symbol.needs_frame)


def place_of(expression: str, is_local: bool = False) -> Optional[ValuePlace]:
    """Where the value of an expression lies; None if nowhere, or if C has no words for it."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in REFERENCES:
        value = value.referenced_value()
    if value.address is None:
        return None
    address, size = int(value.address) % (1 << 64), value.type.sizeof
    if language() == "fortran":
        kind = IN_C.get(value.type.strip_typedefs().code, {}).get(size)
        return None if kind is None else ValuePlace(address, size, f"*({kind} *) {address:#x}", is_local)
    for pointer in (value.type.pointer(), f"__typeof__(&({expression}))"):  # a type may have no name
        with suppress(gdb.error):
            text = f"*({pointer}) {address:#x}"
            gdb.parse_and_eval(text)
            return ValuePlace(address, size, text, is_local)
    return None
