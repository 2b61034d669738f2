"""What a program's file says, against binutils' readelf on real files; and files that are damaged anywhere."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from pathlib import Path

import pytest

from inspector.program.program_file import ProgramFile
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError, RanklensError
from pieglobalsfind.machine.lookup import processor_of
from tests.support.elf_files import WAYS, built, library

# offset, info and type of a relocation; then a symbol's value and name with version and addend, or an addend alone
ROW = re.compile(
    r"([0-9a-f]{16})  ([0-9a-f]{16}) R_\S+ +(?:[0-9a-f]{16} (\S+?)(?:@\S+)? [+-] [0-9a-f]+|(-?[0-9a-f]+|))"
)


@pytest.fixture(params=[*WAYS, "libc.so.6", "libstdc++.so.6", "libm.so.6", "libdw.so.1"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return built(tmp_path, request.param) if request.param in WAYS else library(request.param)


def readelf(option: str, path: Path) -> list[str]:
    """What binutils' readelf prints of a file, line by line."""
    command = ["readelf", option, "-W", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


def test_relocations(path: Path) -> None:
    with ProgramFile(str(path)) as file:
        found = {(one.offset, one.type, one.symbol) for one in file.relocations()}
        relative = file.processor.relocations.relative
    rows = [match for match in map(ROW.match, readelf("-r", path)) if match]
    expected = {(int(row[1], 16), int(row[2], 16) & 0xFFFFFFFF, int(row[2], 16) >> 32) for row in rows}
    assert found == expected | {(place, relative, 0) for place in packed(path)}
    assert found


def test_names_of_relocations(path: Path) -> None:
    with ProgramFile(str(path)) as file:
        symbols = ((one.offset, file.symbol(one)) for one in file.relocations())
        found = {offset: symbol.name for offset, symbol in symbols if symbol is not None and symbol.name}
    rows = [match for match in map(ROW.match, readelf("-r", path)) if match]
    assert found == {int(row[1], 16): row[3] for row in rows if row[3]}


def packed(path: Path) -> set[int]:
    """What DT_RELR relocates."""
    places, inside = set(), False
    for line in readelf("-r", path):
        if line.startswith("Relocation section"):
            inside = ".relr.dyn" in line
        elif inside and len(line.split()) == 1:
            places.add(int(line, 16))
    return places


def test_packed_words_are_addends(tmp_path: Path) -> None:
    path = str(built(tmp_path, "relr"))
    with ProgramFile(path) as file, ElfFile(path) as elf:
        relative = processor_of(elf.header.machine).relocations.relative
        pointer = next(one for one in file.relocations() if one.type == relative)
        assert pointer.addend == struct.unpack("<q", elf.at(pointer.offset, 8))[0] != 0


def test_packed_relocations_of_what_the_file_lacks(tmp_path: Path) -> None:
    """They are not left out in silence, with all that follow them."""
    path = built(tmp_path, "relr")
    (section,) = (line for line in readelf("-S", path) if ".relr.dyn" in line)
    table = int(section.partition(".relr.dyn")[2].split()[2], 16)
    data = bytearray(path.read_bytes())
    data[table : table + 8] = struct.pack("<Q", 0x7FFFFFFFF000)
    path.write_bytes(data)
    with ProgramFile(str(path)) as file, pytest.raises(ObjectFileError, match="damaged"):
        list(file.relocations())


def test_needed_libraries(path: Path) -> None:
    expected = [line.rpartition("[")[2].rstrip("]") for line in readelf("-d", path) if "(NEEDED)" in line]
    with ProgramFile(str(path)) as file:
        assert list(file.needed) == expected


def test_no_section_headers(tmp_path: Path) -> None:
    """Symbols and relocations are found through the dynamic section alone."""
    path = built(tmp_path, "stripped")
    with ProgramFile(str(path)) as file:
        exported, relocations = file.exported, list(file.relocations())
    data = bytearray(path.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)
    path.write_bytes(data)
    with ProgramFile(str(path)) as file:
        assert "entry" in exported and file.exported == exported
        assert list(file.relocations()) == relocations


def read_all(path: Path) -> None:
    """Everything that can be asked of a file."""
    with ProgramFile(str(path)) as file:
        for relocation in file.relocations():
            file.symbol(relocation)
        assert isinstance(file.needed, tuple) and isinstance(file.flags, int)
        assert isinstance(file.dynamic_section, range)


@pytest.mark.timeout(120)
def test_damage(tmp_path: Path) -> None:
    """An answer or one sentence, in bounded time, whatever the bytes of headers and tables are."""
    whole = built(tmp_path, "relr").read_bytes()
    path = tmp_path / "damaged"
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, refused = random.Random(seed), 0
    for _ in range(400):
        data = bytearray(whole[: chance.choice((len(whole), chance.randrange(len(whole))))])
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(data) or 1)
            data[at : at + 4] = chance.choice((b"\xff\xff\xff\x7f", b"\xff" * 4, bytes(4), chance.randbytes(4)))
        path.write_bytes(data)
        try:
            read_all(path)
        except RanklensError:
            refused += 1
    assert refused > 0


def test_what_is_not_an_elf_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    with pytest.raises(ObjectFileError, match="text"):
        ProgramFile(str(tmp_path / "text"))
