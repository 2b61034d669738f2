"""A rank's registers as debuggers number them: what the packets `g` and `p` answer, and target descriptions.

Takes a processor's layout and values by DWARF number. A register that is not known is unavailable, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

from pieglobalsfind.machine.remote import Register, RemoteLayout

UNKNOWN = b"x"
HEAD = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">'


def _machine(layout: RemoteLayout) -> str:
    return f"{HEAD}<architecture>{layout.architecture}</architecture><osabi>GNU/Linux</osabi>"


def description(layout: RemoteLayout) -> str:
    """The target description for GDB."""
    features = "".join(
        f'<feature name="{feature.name}">{feature.types}{"".join(map(_element, feature.registers))}</feature>'
        for feature in layout.features
    )
    return f"{_machine(layout)}{features}</target>"


def _element(register: Register) -> str:
    group = f' group="{register.group}"' if register.group else ""
    return f'<reg name="{register.name}" bitsize="{8 * register.size}" type="{register.type}"{group}/>'


def description_of(layout: RemoteLayout, values: Mapping[int, int], every: bool) -> str:
    """The target description for LLDB, which knows no unavailable register: with the integers that the rank has.

    `every`: with all that a rank may have once it runs. LLDB 19 crashes where a function returns in another register.
    """
    rows = "".join(
        f'<reg name="{register.name}" bitsize="{8 * register.size}" regnum="{number}" type="{register.type}"'
        f' dwarf_regnum="{register.dwarf}" ehframe_regnum="{register.dwarf}"{_generic(layout, register)}/>'
        for number, register in enumerate(layout.registers)
        if (register.dwarf in values and register in layout.integers) or (every and register in layout.of_running)
    )
    core = layout.features[0]
    return f'{_machine(layout)}<feature name="{core.name}">{core.types}{rows}</feature></target>'


def _generic(layout: RemoteLayout, register: Register) -> str:
    return f' generic="{layout.generic[register.name]}"' if register.name in layout.generic else ""


def all_values(layout: RemoteLayout, values: Mapping[int, int]) -> bytes:
    """What `g` answers, in GDB's layout."""
    return b"".join(_digits(register, values) for register in layout.registers)


def value(layout: RemoteLayout, number: int, values: Mapping[int, int]) -> bytes:
    """What `p` answers; raises `ValueError` for a register that there is not."""
    if number >= len(layout.registers):
        raise ValueError("no such register")
    return _digits(layout.registers[number], values)


def known_values(layout: RemoteLayout, values: Mapping[int, int]) -> Iterator[tuple[int, bytes]]:
    """(number, digits) of every integer register that is known: LLDB asks for others when it wants them."""
    return (
        (number, _digits(register, values))
        for number, register in enumerate(layout.registers)
        if register.dwarf in values and register in layout.integers
    )


def _digits(register: Register, values: Mapping[int, int]) -> bytes:
    value: Optional[int] = values.get(register.dwarf, register.always if register.always >= 0 else None)
    if value is None:
        return UNKNOWN * (2 * register.size)
    return (value & ((1 << 8 * register.size) - 1)).to_bytes(register.size, "little").hex().encode()
