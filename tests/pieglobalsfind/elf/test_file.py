"""ELF files as we read them, against pyelftools on real files; and files that lie about themselves."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.symbol_table import read_symbols
from pieglobalsfind.errors import ObjectFileError, RanklensError
from tests.support.elf_files import WAYS, built, library
from tests.support.fabricate.elf_file import Symbol, shared_object


@pytest.fixture(params=[*WAYS, "libc.so.6", "libstdc++.so.6", "libm.so.6", "libdw.so.1"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return built(tmp_path, request.param) if request.param in WAYS else library(request.param)


def test_headers_equal_pyelftools(path: Path) -> None:
    with ElfFile(str(path)) as ours, path.open("rb") as stream:
        theirs = ELFFile(stream)
        assert [
            (
                segment.type,
                segment.flags,
                segment.offset,
                segment.vaddr,
                segment.file_size,
                segment.memory_size,
                segment.align,
            )
            for segment in ours.segments
        ] == [
            (1, *(segment[f"p_{name}"] for name in ("flags", "offset", "vaddr", "filesz", "memsz", "align")))
            for segment in theirs.iter_segments("PT_LOAD")
        ]
        assert [
            (section.name, section.address, section.offset, section.size, section.link) for section in ours.sections
        ] == [
            (section.name, section["sh_addr"], section["sh_offset"], section["sh_size"], section["sh_link"])
            for section in theirs.iter_sections()
        ]
        notes = theirs.get_section_by_name(".note.gnu.build-id")
        assert ours.build_id.hex() == (next(notes.iter_notes())["n_desc"] if isinstance(notes, NoteSection) else "")
        dynamic = [segment for segment in theirs.iter_segments() if isinstance(segment, DynamicSegment)]
        expected = [tag["d_val"] for segment in dynamic for tag in segment.iter_tags() if tag["d_tag"] != "DT_NULL"]
        assert [value for _, value in ours.dynamic] == expected


def test_no_section_headers(tmp_path: Path) -> None:
    """Symbols are still found, through the dynamic section and the hash table."""
    path = built(tmp_path, "stripped")
    with ElfFile(str(path)) as elf:
        expected = read_symbols(elf).addresses.named("entry")
    data = bytearray(path.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)
    path.write_bytes(data)
    with ElfFile(str(path)) as elf:
        assert elf.sections == ()
        assert expected is not None
        assert read_symbols(elf).addresses.named("entry") == expected
        assert len(elf.build_id) == 20


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not an ELF file"),
        (b"#!/bin/sh\n", "is not an ELF file"),
        (b"\x7fELF\x02\x01", "truncated in its ELF header"),
        (b"\x7fELF\x01\x01".ljust(64, b"\0"), "32-bit"),
        (b"\x7fELF\x02\x07".ljust(64, b"\0"), "byte order is 7"),
    ],
)
def test_what_is_no_elf_file(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ObjectFileError, match=sentence):
        ElfFile(str(path))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, sentence in (("none", "no such file"), (".", "not a regular file"), ("fifo", "not a regular file")):
        with pytest.raises(ObjectFileError, match=sentence):
            ElfFile(str(tmp_path / name))
    with pytest.raises(ObjectFileError, match="not a path"):
        ElfFile("a\0b")


def read_all(path: Path) -> None:
    """Everything that can be asked of a file."""
    with ElfFile(str(path)) as elf:
        for segment in elf.segments:
            elf.at(segment.vaddr, min(segment.memory_size, 1 << 16))
        assert isinstance(elf.build_id, bytes)
        assert isinstance(elf.dynamic, tuple)
        read_symbols(elf)


@pytest.mark.timeout(60)
def test_every_length(tmp_path: Path) -> None:
    """A file cut anywhere: an answer or one sentence, in bounded time."""
    whole = built(tmp_path, "relr").read_bytes()
    path = tmp_path / "cut"
    refused = 0
    for length in [*range(0, 1200, 7), *range(1200, len(whole), 997), len(whole)]:
        path.write_bytes(whole[:length])
        refused += is_refused(path)
    assert refused > 0
    assert not is_refused(tmp_path / "relr")


def is_refused(path: Path) -> bool:
    try:
        read_all(path)
    except RanklensError as error:
        assert str(error)
        return True
    return False


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits(tmp_path: Path, seed: int) -> None:
    """Headers and tables with a few wrong bits: nothing but `RanklensError` comes out, in bounded time."""
    chance = random.Random(seed)
    whole = built(tmp_path, chance.choice(["relr", "library", "pie"])).read_bytes()
    path = tmp_path / "flipped"
    start = struct.unpack_from("<Q", whole, 40)[0]
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            place = chance.choice(
                [chance.randrange(0x400), chance.randrange(start, len(data)), chance.randrange(len(data))]
            )
            data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        is_refused(path)


def test_wild_counts(tmp_path: Path) -> None:
    """Counts of all ones in each place that has one."""
    whole = shared_object((Symbol("f", 0x1000, 16),))
    path = tmp_path / "wild"
    sections = struct.unpack_from("<Q", whole, 40)[0]
    places = [(56, 2), (60, 2), (32, 8), (40, 8), *((64 + 56 * i + 32, 8) for i in range(4))]
    places += [(sections + 64 * i + field, 8) for i in range(6) for field in (24, 32)]
    for at, size in places:
        for value in (b"\xff", b"\x7f"):
            data = bytearray(whole)
            data[at : at + size] = value * size
            path.write_bytes(data)
            is_refused(path)
