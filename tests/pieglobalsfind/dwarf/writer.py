"""Writes debug information that no compiler writes: entries as given, assembled into a shared object.

Takes units as trees of entries by the standard's names; gives the file. What is said may be sound or not: a reference
leads wherever it is told to.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from elftools.dwarf.enums import ENUM_DW_AT, ENUM_DW_FORM, ENUM_DW_TAG

SIZES = {
    "data1": ".byte",
    "data2": ".value",
    "data4": ".long",
    "data8": ".quad",
    "flag": ".byte",
    "addr": ".quad",
    "sec_offset": ".long",
    "GNU_strp_alt": ".long",
}
NUMBERS = {"udata": ".uleb128", "sdata": ".sleb128"}
C_PLUS_PLUS = 4


@dataclass(frozen=True)
class To:
    """A reference to the entry of that label, and as many bytes behind it."""

    label: str
    behind: int = 0


@dataclass(frozen=True)
class At:
    """An address so many bytes into the file's data, or a location there."""

    offset: int = 0


Value = Union[int, str, bytes, To, At]


@dataclass(frozen=True)
class Entry:
    """A DIE: `tag` and the names of attributes and forms are the standard's, without DW_TAG_, DW_AT_ and DW_FORM_."""

    tag: str
    attributes: tuple[tuple[str, str, Value], ...] = ()
    children: tuple[Entry, ...] = ()
    label: str = ""


def entry(tag: str, label: str = "", children: Sequence[Entry] = (), **attributes: Value) -> Entry:
    """An entry whose values are of their usual forms."""
    told = tuple((name, usual_form(value), value) for name, value in attributes.items())
    return Entry(tag, told, tuple(children), label)


def usual_form(value: Value) -> str:
    if isinstance(value, int):
        return "udata" if value >= 0 else "sdata"
    return {str: "string", bytes: "exprloc", To: "ref_addr", At: "exprloc"}[type(value)]


def unit(*children: Entry, language: int = C_PLUS_PLUS) -> Entry:
    return entry("compile_unit", children=children, language=language)


def written(folder: Path, *units: Entry, more: Sequence[str] = (), name: str = "written.so") -> Path:
    """A shared object whose debug information is that alone (DWARF 4), and `more` in assembler."""
    source = folder / f"{name}.s"
    source.write_text("\n".join([*assembly(units), *more]) + "\n")
    command = ["gcc", "-shared", "-nostdlib", source.name, "-o", name]
    subprocess.run(command, check=True, cwd=folder, timeout=120)
    return folder / name


def assembly(units: Sequence[Entry]) -> Iterator[str]:
    kinds: dict[tuple[object, ...], int] = {}
    yield from (".data", "data: .zero 65536", '.section .debug_info,"",@progbits', "info:")
    for number, one in enumerate(units):
        yield from (f"unit{number}: .long end{number} - begin{number}", f"begin{number}: .value 4")
        yield from (".long abbreviations", ".byte 8")
        yield from lines(one, kinds, f"unit{number}")
        yield f"end{number}:"
    yield from ('.section .debug_abbrev,"",@progbits', "abbreviations:")
    for kind, code in kinds.items():
        numbers = (code, *kind, 0, 0)
        yield ".uleb128 " + ", ".join(map(str, numbers))
    yield ".byte 0"
    yield '.section .note.GNU-stack,"",@progbits'


def lines(one: Entry, kinds: dict[tuple[object, ...], int], unit: str) -> Iterator[str]:
    """An entry and those below it, in that unit; `kinds` are the abbreviations by what they say."""
    waiting = [iter([one])]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            if waiting:
                yield ".byte 0"
            continue
        kind: list[object] = [ENUM_DW_TAG[f"DW_TAG_{entry.tag}"], int(bool(entry.children))]
        for name, form, _ in entry.attributes:
            kind += [ENUM_DW_AT[f"DW_AT_{name}"], ENUM_DW_FORM[f"DW_FORM_{form}"]]
        yield f"{entry.label}:" if entry.label else ""
        yield f".uleb128 {kinds.setdefault(tuple(kind), len(kinds) + 1)}"
        for _, form, value in entry.attributes:
            yield from of_value(form, value, unit)
        if entry.children:
            waiting.append(iter(entry.children))


def of_value(form: str, value: Value, unit: str) -> Iterator[str]:
    if isinstance(value, To):
        yield f".long {value.label} - {'info' if form == 'ref_addr' else unit} + {value.behind}"
    elif isinstance(value, At):
        yield ".byte 9, 3" if form == "exprloc" else ""
        yield f".quad data + {value.offset}"
    elif isinstance(value, bytes) and form == "string":  # which has the end that it is given
        yield ".byte " + ", ".join(map(str, value))
    elif isinstance(value, bytes):
        yield f".uleb128 {len(value)}"
        yield ".byte " + ", ".join(map(str, value)) if value else ""
    elif isinstance(value, str):
        yield f'.asciz "{value}"'
    elif form != "flag_present":
        yield f"{SIZES.get(form) or NUMBERS[form]} {value}"
