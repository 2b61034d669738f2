"""Core files that are incomplete, damaged or of something else, and programs that are not where they were."""

from __future__ import annotations

import contextlib
import gzip
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.errors import MemoryUnreadable, RanklensError, TargetError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.targets.core import CoreTarget
from tests.support.fabricate.core_file import File, Memory, Thread, core
from tests.support.fabricate.elf_file import PAGE, shared_object
from tests.support.held import Held, gcore

BASE = 0x7F0000000000


def written(folder: Path, data: bytes, name: str = "core") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def with_library(folder: Path, held_bytes: bytes, build_id: bytes = b"\x11" * 20) -> tuple[str, str]:
    """A library's file, and a core file that holds only `held_bytes` of its first page."""
    path = written(folder, shared_object(build_id=build_id), "library.so")
    files = (File(BASE, BASE + 2 * PAGE, 0, path), File(BASE + 2 * PAGE, BASE + 3 * PAGE, 2, path))
    memory = (Memory(BASE, 2 * PAGE, held_bytes, 5), Memory(BASE + 2 * PAGE, PAGE, b"changed".ljust(PAGE, b"."), 6))
    return path, written(folder, core(memory, files, (Thread(7, BASE + PAGE, 0x1000),)))


def test_what_the_core_leaves_to_files(tmp_path: Path) -> None:
    """Bytes that it holds come from it, the others from the file."""
    path, name = with_library(tmp_path, shared_object()[:PAGE])
    target = CoreTarget(name)
    assert target.read(BASE + PAGE, PAGE) == Path(path).read_bytes()[PAGE : 2 * PAGE]
    assert target.read(BASE + PAGE - 8, 16) == Path(path).read_bytes()[PAGE - 8 : PAGE + 8]
    assert target.read(BASE + 2 * PAGE, 8) == b"changed."
    assert target.file_identity(path) == b"\x11" * 20
    assert (
        next(thread.registers for thread in target.threads() if not isinstance(thread.registers, Absent))[16]
        == BASE + PAGE
    )


def test_another_file_is_no_source_of_bytes(tmp_path: Path) -> None:
    """Same path, same size, another build-id."""
    _, name = with_library(tmp_path, shared_object()[:PAGE])
    written(tmp_path, shared_object(build_id=b"\x22" * 20), "library.so")
    with pytest.raises(MemoryUnreadable, match=r"nor is .*library.so what was mapped"):
        CoreTarget(name).read(BASE + PAGE, 16)


def test_a_file_that_nothing_speaks_for(tmp_path: Path) -> None:
    """Without its headers in the core file nobody can tell whether it is the same file."""
    _, name = with_library(tmp_path, b"")
    with pytest.raises(MemoryUnreadable):
        CoreTarget(name).read(BASE + PAGE, 16)


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_what_follows_a_file_in_its_last_page(page: int, tmp_path: Path) -> None:
    """Zeros up to the page's end, however large the process's pages are, and nothing after it."""
    data = shared_object()
    path, extent, end = written(tmp_path, data, "library.so"), 1 << 17, -(-len(data) // page) * page
    memory = (Memory(BASE, extent, data[:PAGE], 5),)
    target = CoreTarget(written(tmp_path, core(memory, (File(BASE, BASE + extent, 0, path),), (), 183, ((6, page),))))
    assert target.read(BASE + end - 8, 8) == bytes(8)
    with pytest.raises(MemoryUnreadable, match="it is mapped beyond the end"):
        target.read(BASE + end, 8)


def test_a_moved_file(tmp_path: Path) -> None:
    path, name = with_library(tmp_path, shared_object()[:PAGE])
    moved = tmp_path / "elsewhere.so"
    shutil.move(path, moved)
    with pytest.raises(MemoryUnreadable):
        CoreTarget(name).read(BASE + PAGE, 16)
    target = CoreTarget(name, exe=str(moved))
    assert target.read(BASE + PAGE, 16) == moved.read_bytes()[PAGE : PAGE + 16]
    assert target.open_path(path) == str(moved)


def test_the_wrong_file(tmp_path: Path) -> None:
    """Both build-ids are named."""
    _, name = with_library(tmp_path, shared_object()[:PAGE])
    (tmp_path / "other").mkdir()
    wrong = written(tmp_path / "other", shared_object(build_id=b"\x22" * 20), "library.so")
    with pytest.raises(UsageError, match=r"22222222.*11111111"):
        CoreTarget(name, exe=wrong)
    with pytest.raises(UsageError, match="was not mapped in"):
        CoreTarget(name, exe="/bin/true")
    with pytest.raises(RanklensError, match="no such file"):
        CoreTarget(name, exe=str(tmp_path / "none"))


def test_what_nobody_holds_is_not_zero(tmp_path: Path) -> None:
    name = written(tmp_path, core((Memory(0x10000, 2 * PAGE, b"x" * PAGE), Memory(0x40000, PAGE))))
    target = CoreTarget(name)
    assert target.read(0x10000, PAGE) == b"x" * PAGE
    for address in (0x10000 + PAGE, 0x40000):
        with pytest.raises(MemoryUnreadable, match="coredump_filter"):
            target.read(address, 1)


@pytest.mark.parametrize(
    ("content", "sentence", "hint"),
    [
        (b"", "is not an ELF file", ""),
        (b"text\n", "is not an ELF file", ""),
        (gzip.compress(b"core", mtime=0), "is not an ELF file", "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd....", "is not an ELF file", "compressed with zstd"),
        (shared_object(), "is not a core file", "gcore"),
        (core((Memory(0, PAGE),), machine=20), "a program for PowerPC", ""),
        (core((Memory(0, PAGE),), machine=999), "ELF machine 999", ""),
        (core(())[:64], "truncated, it has no program headers", "again"),
    ],
)
def test_what_is_no_core_file(tmp_path: Path, content: bytes, sentence: str, hint: str) -> None:
    with pytest.raises(TargetError, match=sentence) as caught:
        CoreTarget(written(tmp_path, content))
    assert hint in caught.value.hint


def test_no_file(tmp_path: Path) -> None:
    for name in ("none", "."):
        with pytest.raises(TargetError):
            CoreTarget(str(tmp_path / name))


def test_more_mappings_than_the_header_can_count(tmp_path: Path) -> None:
    """PN_XNUM: the number of program headers stands in the first section header (core(5) of many ranks)."""
    count = 70_000
    data = bytearray(core(tuple(Memory(0x100000 + i * PAGE, PAGE) for i in range(count - 1))))
    last = struct.pack("<IIQQQQQQ", 1, 6, 0, 0x50000000, 0, 64, PAGE, PAGE)
    whole = bytearray(data[: 64 + 56 * count]) + last
    section = len(whole)
    whole += struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, count + 1, 0, 0)
    struct.pack_into("<Q", whole, 40, section)
    struct.pack_into("<HHHH", whole, 56, 0xFFFF, 64, 1, 0)
    target = CoreTarget(written(tmp_path, bytes(whole)))
    assert target.read(0x50000000, 4) == b"\x7fELF"
    assert len(target.maps()) == count


def ask_everything(path: Path, held: Held) -> bool:
    """Whether anything was refused; only `RanklensError` may come out, and before the suite's timeout."""
    try:
        target = CoreTarget(str(path))
        target.threads()
        target.maps()
        target.file_identity(str(held.program))
        for place in held.places.values():
            target.read(place, 64)
    except RanklensError as error:
        assert str(error)
        return True
    return False


def test_every_length(held: Held, tmp_path: Path) -> None:
    whole = gcore(held, tmp_path).read_bytes()
    path = tmp_path / "cut"
    lengths = [*range(0, 4096, 61), *range(4096, len(whole), max(len(whole) // 60, 1))]
    refused = 0
    for length in lengths:
        path.write_bytes(whole[:length])
        refused += ask_everything(path, held)
    assert refused > len(lengths) // 2
    path.write_bytes(whole)
    assert not ask_everything(path, held)


def test_a_truncated_core_file_says_so(held: Held, tmp_path: Path) -> None:
    """What lies before the cut can still be read."""
    path = gcore(held, tmp_path)
    with CoreReader(path) as whole:
        offset = whole.offset_of(held.places["second"])
    assert CoreTarget(str(path)).cut_short == ""
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: offset + 8])
    target = CoreTarget(str(path))
    said = re.fullmatch(
        rf"core file {path.name} is cut short, ([0-9,]+) of ([0-9,]+) bytes are there(.*)", target.cut_short
    )
    assert said and int(said[1].replace(",", "")) == offset + 8 < int(said[2].replace(",", "")) <= size
    assert said[3] == ", without the list of threads and mapped files", "GDB writes it last"
    assert target.read(held.places["second"], 8) == b"held on "
    with pytest.raises(MemoryUnreadable, match="the core file is truncated"):
        target.read(held.places["second"], 16)


def test_a_kernels_core_file_that_is_truncated(tmp_path: Path) -> None:
    """Its notes are first, so that only memory is lost; one byte is enough."""
    path = tmp_path / "cut"
    whole = core((Memory(0x10000, 4096, b"a" * 4096),), threads=(Thread(5, 0x10000, 0x10010),))
    path.write_bytes(whole[:-1])
    target = CoreTarget(str(path))
    assert target.cut_short == f"core file cut is cut short, {len(whole) - 1:,} of {len(whole):,} bytes are there"
    assert target.read(0x10000, 4095) == b"a" * 4095 and [thread.tid for thread in target.threads()] == [5]
    with pytest.raises(MemoryUnreadable, match="it is not mapped"):
        target.read(0x20000, 1)


class CoreReader(contextlib.AbstractContextManager["CoreReader"]):
    """Where a core file holds an address, by binutils."""

    def __init__(self, path: Path) -> None:
        command = ["readelf", "-lW", str(path)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        rows = [line.split() for line in output.splitlines() if line.strip().startswith("LOAD")]
        self._loads = [tuple(int(word, 16) for word in row[1:6]) for row in rows]

    def offset_of(self, address: int) -> int:
        return next(row[0] + address - row[1] for row in self._loads if row[1] <= address < row[1] + row[3])

    def __exit__(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits(held: Held, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole = gcore(held, tmp_path).read_bytes()
    path = tmp_path / "flipped"
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(0x3000)] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        ask_everything(path, held)
