"""Damaged debug information gives a partial answer or a sentence: no crash, no hang, no other exception."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.nested_types import settle
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import (
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
from tests.support.running import ROOT
from tests.support.shapes import Build

SEEDS = range(260, 310)
CHANGED = {
    f".debug_{name}" for name in ("info", "abbrev", "str", "line", "line_str", "rnglists", "ranges", "loclists", "loc")
} | {".eh_frame"}


def asked(*paths: Path) -> None:
    """Ask everything of these files, in a process of its own: a crash is one of that."""
    command = [sys.executable, "-m", "tests.pieglobalsfind.dwarf.questions", *map(str, paths)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith("asked\n")


def damaged(binary: Path, seed: int) -> Path:
    """A copy with some bytes of its debug sections changed: a little, or to what is least expected."""
    chosen = random.Random(seed)
    with binary.open("rb") as stream:
        sections = [
            (section["sh_offset"], section["sh_size"])
            for section in ELFFile(stream).iter_sections()
            if section.name in CHANGED and section["sh_size"]
        ]
    data = bytearray(binary.read_bytes())
    for _ in range(chosen.choice((1, 2, 5, 30))):
        start, size = chosen.choice(sections)
        at = start + chosen.randrange(size)
        one_bit = data[at] ^ 1 << chosen.randrange(8)
        data[at] = chosen.choice((chosen.randrange(256), 0, 255, one_bit, data[at] + 1 & 255, data[at] - 1 & 255))
    copy = binary.with_name(f"damaged{seed}.so")
    copy.write_bytes(data)
    return copy


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("source", ["shapes.c", "small.cpp", "shapes.f90"])
def test_changed_bytes(build: Build, source: str, version: str) -> None:
    binary = build(source, "-O1", f"-gdwarf-{version}")
    asked(*(damaged(binary, seed) for seed in SEEDS))


def test_truncated_files(build: Build) -> None:
    binary = build("shapes.c")
    data = binary.read_bytes()
    copies = []
    for part in range(1, 20):
        copies.append(binary.with_name(f"part{part}.so"))
        copies[-1].write_bytes(data[: len(data) * part // 20])
    asked(*copies)


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
    assert isinstance(table[6], Struct), "a list's node is not a loop by value"


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
