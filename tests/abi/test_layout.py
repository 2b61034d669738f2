"""The debug ABI as the C and C++ compilers lay it out, against the formats by which Python reads it."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders.registry import layout as layout
from tests.support.running import ROOT

INCLUDE = ROOT / "runtime-hooks" / "include"
RECORDS: dict[Any, str] = {
    layout.ObjectRecord: "object",
    layout.SegmentRecord: "segment",
    layout.RankRecord: "rank",
    layout.Copy: "copy",
    layout.TlsBlockRecord: "tls_block",
    layout.Redirection: "redirection",
    layout.RootRecord: "root",
    layout.RegisterRecord: "register",
    layout.CallRecord: "call",
    layout.BlockRecord: "block",
    layout.Kept: "kept",
    layout.ProcessingElement: "processing_element",
    layout.EventEntry: "event_entry",
    layout.RankLoadRecord: "load",
    layout.SentRecord: "sent",
    layout.ElementLoadRecord: "element_load",
}
DIALECTS = [("gcc", "-std=c11", "c"), ("g++", "-std=c++17", "c++")]


def python_layout(form: str, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """(field, offset), and ("sizeof", size) last."""
    items, found, count = [], [], ""
    for letter in form:
        if letter.isdigit():
            count += letter
        else:
            items.append(count + letter)
            count = ""
    assert len(items) == len(names)
    for index, name in enumerate(names):
        found.append((name, struct.calcsize("<" + "".join(items[:index]))))
    return [*found, ("sizeof", struct.calcsize("<" + form))]


def compiled_layout(compiler: str, standard: str, language: str, folder: Path) -> dict[str, list[tuple[str, int]]]:
    """The same, as a program prints it that includes the header."""
    lines = []
    for kind, name in RECORDS.items():
        fields = kind._fields
        lines += [f'printf("{name} {field} %zu\\n", offsetof(struct rank_debug_{name}, {field}));' for field in fields]
        lines.append(f'printf("{name} sizeof %zu\\n", sizeof(struct rank_debug_{name}));')
    lines += [
        f'printf("header {field} %zu\\n", offsetof(struct rank_debug_header, {field}));'
        for field in layout.RegistryHeader._fields
    ]
    lines.append('printf("header sizeof %zu\\n", offsetof(struct rank_debug_header, strings));')
    lines.append('printf("whole_header events %zu\\n", offsetof(struct rank_debug_header, events));')
    lines.append('printf("whole_header events_written %zu\\n", offsetof(struct rank_debug_header, events_written));')
    lines.append('printf("whole_header loads %zu\\n", offsetof(struct rank_debug_header, loads));')
    lines.append('printf("whole_header element_loads %zu\\n", offsetof(struct rank_debug_header, element_loads));')
    lines.append('printf("whole_header sizeof %zu\\n", sizeof(struct rank_debug_header));')
    source, program = folder / "layout.source", folder / "layout"
    source.write_text('#include <stdio.h>\n#include "rank_debug.h"\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    command = [compiler, standard, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-x", language, str(source)]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=60)
    printed = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
    found: dict[str, list[tuple[str, int]]] = {}
    for line in printed.splitlines():
        name, field, value = line.split()
        found.setdefault(name, []).append((field, int(value)))
    return found


@pytest.mark.parametrize(("compiler", "standard", "language"), DIALECTS)
def test_records(compiler: str, standard: str, language: str, tmp_path: Path) -> None:
    compiled = compiled_layout(compiler, standard, language, tmp_path)
    forms: dict[Any, str] = layout.FORMS
    assert {name: python_layout(forms[kind], kind._fields) for kind, name in RECORDS.items()} == {
        name: fields for name, fields in compiled.items() if name not in ("header", "whole_header")
    }
    assert compiled["whole_header"] == [
        ("events", layout.EVENTS_AT),
        ("events_written", layout.EVENTS_WRITTEN_AT),
        ("loads", layout.LOADS_AT),
        ("element_loads", layout.ELEMENT_LOADS_AT),
        ("sizeof", layout.HEADER_SIZE),
    ]
    assert python_layout(layout.HEADER_FORM, layout.RegistryHeader._fields) == compiled["header"]


def test_the_symbol_survives_strip(tmp_path: Path) -> None:
    library = tmp_path / "librankmpi.so"
    source = ROOT / "build" / "runtime" / "lib" / "librankmpi.so"
    subprocess.run(["strip", "-o", library, source], check=True, timeout=60)
    symbols = subprocess.run(["nm", "-D", library], check=True, capture_output=True, text=True, timeout=60).stdout
    assert {"rank_debug_registry", "rank_debug_event"} <= {line.split()[-1] for line in symbols.splitlines()}
