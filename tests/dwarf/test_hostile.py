"""Damaged debug information gives a partial answer or a sentence: no crash, no hang, no other exception."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from pieglobalsfind.dwarf_expression import evaluate
from pieglobalsfind.dwarf_names import type_name
from pieglobalsfind.dwarf_type_reader import settle
from pieglobalsfind.dwarf_types import (
    Array,
    Base,
    Dimension,
    Expression,
    Member,
    Pointer,
    Struct,
    Type,
    Typedef,
    TypeTable,
    Void,
)
from pieglobalsfind.model import Absent
from tests.conftest import ROOT
from tests.dwarf.conftest import Build

READ = """
import sys
from pieglobalsfind.dwarf import DebugInfo
from pieglobalsfind.dwarf_names import type_name
from pieglobalsfind.errors import RanklensError
for path in sys.argv[1:]:
    try:
        information = DebugInfo.open(path)
        for one in information.variables():
            type_name(information.types, one.type, one.language)
        for address in range(0x1000, 0x1400, 16):
            information.line(address), information.function(address)
        information.close()
    except RanklensError as error:
        print(error)
"""


def damaged(binary: Path, seed: int) -> Path:
    """A copy with some bytes of its debug sections changed."""
    chosen = random.Random(seed)
    with binary.open("rb") as stream:
        sections = [
            (one["sh_offset"], one["sh_size"])
            for one in ELFFile(stream).iter_sections()
            if one.name.startswith(".debug") and one["sh_size"]
        ]
    data = bytearray(binary.read_bytes())
    for _ in range(chosen.choice((1, 4, 30))):
        start, size = chosen.choice(sections)
        data[start + chosen.randrange(size)] = chosen.randrange(256)
    copy = binary.with_name(f"damaged{seed}.so")
    copy.write_bytes(data)
    return copy


@pytest.mark.parametrize("source", ["shapes.c", "shapes.f90"])
def test_changed_bytes(build: Build, source: str) -> None:
    binary = build(source)
    copies = [str(damaged(binary, seed)) for seed in range(40)]
    run = subprocess.run([sys.executable, "-c", READ, *copies], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


def test_truncated_files(build: Build) -> None:
    binary = build("shapes.c")
    data = binary.read_bytes()
    copies = []
    for part in range(1, 20):
        copies.append(binary.with_name(f"part{part}.so"))
        copies[-1].write_bytes(data[: len(data) * part // 20])
    command = [sys.executable, "-c", READ, *map(str, copies)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


def without_loops(types: list[Type]) -> list[Type]:
    result: dict[int, Type] = {}
    levels: dict[int, int] = {}
    for index in range(len(types)):
        settle(index, result, levels, types.__getitem__)
    return [result[index] for index in range(len(types))]


def test_a_type_that_contains_itself_is_cut() -> None:
    loops: list[Type] = [
        Void(),
        Struct("struct", "self", 8, (Member("inner", 1, 0),)),
        Typedef("round", 3),
        Typedef("about", 2),
        Array(5, (Dimension(0, 3),), 24),
        Struct("struct", "holder", 8, (Member("array", 4, 0),)),
        Struct("struct", "list", 8, (Member("next", 7, 0),)),
        Pointer(6, 8),
    ]
    table = TypeTable(tuple(without_loops(loops)))
    for index in range(len(loops)):
        assert table.size(index) >= 0
        type_name(table, index)
    assert isinstance(table[6], Struct), "a list's node is no loop by value"


def test_a_pointer_to_itself_has_a_name() -> None:
    assert "..." in type_name(TypeTable((Void(), Pointer(1, 8))), 1)


def test_absurd_arrays_have_no_size() -> None:
    table = without_loops(
        [Void(), Base("int", 4, "signed"), Array(1, (Dimension(0, 1 << 40), Dimension(0, 1 << 40)), 0)]
    )
    assert TypeTable(tuple(table)).size(2) == 0


@pytest.mark.parametrize("code", [b"\x2f\xfd\xff", b"\x06", b"\x97\x06\x06\xff", b"\x23\x80", b"\x12" * 5000, b""])
def test_expressions_that_make_no_sense(code: bytes) -> None:
    answer = evaluate(Expression(code), 0x1000, lambda address, size: bytes(size))
    assert isinstance(answer, Absent)
