"""What holds memory in a sparse mapping, against the pages that a process says it has touched."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pieglobalsfind.errors import MemoryUnreadable, TargetError
from pieglobalsfind.target import PIECE, pieces, populated
from pieglobalsfind.targets import pagemap, write_snapshot
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.procfs import Process
from pieglobalsfind.targets.snapshot import SnapshotTarget
from tests.support.fabricate.core_file import Memory, core
from tests.support.fabricate.memory import Mapped, MemoryTarget

PAGE = os.sysconf("SC_PAGE_SIZE")
GIGABYTE = 1 << 30
SIZE = 64 * GIGABYTE
MANY = range(40 * GIGABYTE, 40 * GIGABYTE + 20000 * 25 * PAGE, 25 * PAGE)


@dataclass(frozen=True)
class Sparse:
    """A process with a mapping of 64 GB, and the offsets of the pages that it has written to."""

    pid: int
    base: int
    touched: tuple[int, ...]

    @property
    def pages(self) -> set[int]:
        return {self.base + one for one in self.touched}


@pytest.fixture
def sparse(tmp_path: Path) -> Iterator[Sparse]:
    program = tmp_path / "sparse"
    source = Path(__file__).parent / "sparse.c"
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", str(program), str(source)], check=True, timeout=60)
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said: list[tuple[str, int]] = []
            while not said or said[-1][0] != "second":
                name, value = process.stdout.readline().split()
                said.append((name, int(value, 16)))
            pages = (value for name, value in said if name == "page")
            yield Sparse(process.pid, said[0][1], tuple(sorted((*pages, *MANY))))
        finally:
            process.kill()


def pages_of(ranges: Iterator[tuple[int, int]]) -> list[int]:
    return [page for first, last in ranges for page in range(first, last, PAGE)]


def test_pages_that_were_written_to(sparse: Sparse) -> None:
    """The page that was only read, which is the kernel's page of zeros, may be among them."""
    for target in (LiveTarget(sparse.pid), Process(sparse.pid)):
        found = pages_of(target.populated(sparse.base, sparse.base + SIZE))
        assert found == sorted(set(found)) and set(found) - sparse.pages <= {sparse.base + 2000000 * PAGE}
        assert sparse.pages <= set(found)


def test_an_old_kernel_lists_the_same_pages(sparse: Sparse) -> None:
    descriptor = os.open(f"/proc/{sparse.pid}/pagemap", os.O_RDONLY)
    try:
        listed = pages_of(pagemap.listed(descriptor, sparse.base, sparse.base + SIZE))
    finally:
        os.close(descriptor)
    assert sparse.pages <= set(listed) <= {*sparse.pages, sparse.base + 2000000 * PAGE}


def test_a_part_of_a_mapping(sparse: Sparse) -> None:
    begin, end = sparse.base + PAGE, sparse.base + 512 * PAGE + 8
    (first, last), *others = LiveTarget(sparse.pid).populated(begin, end)
    assert (first, last) == (begin, begin + PAGE)
    assert others[-1] == (sparse.base + 511 * PAGE, end)
    assert list(LiveTarget(sparse.pid).populated(sparse.base + 100, sparse.base + 200)) == [
        (sparse.base + 100, sparse.base + 200)
    ]


def test_a_large_read_leaves_untouched_pages_alone(sparse: Sparse) -> None:
    """It gives the process no page tables for them, which a read by the kernel would."""

    def tables() -> int:
        status = Path(f"/proc/{sparse.pid}/status").read_text()
        return int(re.search(r"^VmPTE:\s+(\d+) kB", status, re.MULTILINE)[1])  # type: ignore[index]

    before = tables()
    target = LiveTarget(sparse.pid)
    assert target.read(sparse.base + 5 * GIGABYTE, GIGABYTE) == bytes(GIGABYTE)
    assert tables() == before
    begin, size = sparse.base + 100, 4 << 20
    data = target.read(begin, size)
    small = b"".join(target.read(begin + at, PAGE) for at in range(0, size, PAGE))
    assert data == small and data.count(b"touched") == 6


def test_a_large_read_of_a_file_s_pages_is_of_all(tmp_path: Path) -> None:
    """Those that no page table has hold the file's bytes all the same; also across into anonymous memory."""
    content = os.urandom(3 << 20)
    (tmp_path / "content").write_bytes(content)
    source = (
        "import mmap, sys, time\n"
        f"file = open({str(tmp_path / 'content')!r}, 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)\n"
        "print('ready', flush=True)\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen(["python3", "-c", source], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            target = LiveTarget(process.pid)
            (mapping,) = (mapping for mapping in target.maps() if mapping.path == str(tmp_path / "content"))
            assert target.read(mapping.start, len(content)) == content
        finally:
            process.kill()


def test_pieces_are_of_touched_pages_alone(sparse: Sparse) -> None:
    found = list(pieces(LiveTarget(sparse.pid), sparse.base, sparse.base + SIZE))
    assert sum(len(data) for _, data in found) <= PAGE * (len(sparse.touched) + 1)
    assert sum(data.count(b"touched") + data.count(b"many") for _, data in found) == len(sparse.touched)


@pytest.mark.parametrize("overlap", [0, 32])
def test_large_memory_is_read_in_pieces_that_overlap_as_wanted(overlap: int) -> None:
    target = MemoryTarget([Mapped(0x10000, 2 * PIECE + 100)])
    found = [(start, len(data)) for start, data in pieces(target, 0x10000, 0x10000 + 2 * PIECE + 100, overlap)]
    assert found == [
        (0x10000, PIECE + overlap),
        (0x10000 + PIECE, PIECE + overlap),
        (0x10000 + 2 * PIECE, 100),
    ]


def test_holes_of_a_core_file_are_not_read(tmp_path: Path) -> None:
    """A file of 20 GB, of which a few blocks are on the disk."""
    size, start = 20 * GIGABYTE, 0x10000000
    path = tmp_path / "core"
    head = core((Memory(start, 3 * PAGE, bytes(3 * PAGE)), Memory(start + PAGE * 100, size)))
    offset = len(head)
    assert offset % PAGE == 0
    data = bytearray(head)
    second = 64 + 2 * 56
    data[second + 8 : second + 16] = offset.to_bytes(8, "little")  # p_offset
    data[second + 32 : second + 40] = size.to_bytes(8, "little")  # p_filesz
    with path.open("wb") as file:
        file.write(data)
        file.seek(offset + 5 * GIGABYTE + 10)
        file.write(b"held")
        file.truncate(offset + size)
    target = CoreTarget(str(path))
    found = list(populated(target, start + PAGE * 100, start + PAGE * 100 + size))
    assert sum(last - first for first, last in found) <= 1 << 20
    assert [data for _, data in pieces(target, start, start + PAGE * 100 + size) if b"held" in data]
    assert target.read(start + PAGE * 100 + 5 * GIGABYTE + 10, 4) == b"held"


def test_a_snapshot_has_no_bytes_of_pages_that_were_never_touched(sparse: Sparse, tmp_path: Path) -> None:
    """It reads them as zeros, and so does a process."""
    file = tmp_path / "it"
    heard: list[tuple[int, int]] = []
    with FrozenTarget(sparse.pid) as target:
        written = write_snapshot.write(
            target, [(sparse.base, sparse.base + SIZE)], "now", str(file), lambda *how: heard.append(how)
        )
    assert written.memory <= PAGE * (len(sparse.touched) + 1) and written.memory + written.zeros == SIZE
    assert file.stat().st_size < 1 << 23
    assert heard and all(0 <= done < total == SIZE for done, total in heard)
    taken, process = SnapshotTarget(str(file)), LiveTarget(sparse.pid)
    for page in (*sparse.touched[::500], 2 * PAGE, 30 * GIGABYTE, SIZE - 3 * PAGE):
        begin = max(sparse.base + page - 100, sparse.base)
        assert taken.read(begin, 300) == process.read(begin, 300), hex(page)
    with pytest.raises(MemoryUnreadable):
        taken.read(sparse.base + SIZE - 8, 16)


def test_a_core_file_s_zeros_are_what_it_holds(tmp_path: Path) -> None:
    """Of memory that it does not hold nothing is said."""
    start = 0x10000000
    path = tmp_path / "core"
    path.write_bytes(core((Memory(start, 4 * PAGE, b"held".ljust(PAGE, b".") + bytes(PAGE)),)))
    file = tmp_path / "it"
    write_snapshot.write(CoreTarget(str(path)), [(start, start + 4 * PAGE)], "now", str(file))
    taken = SnapshotTarget(str(file))
    assert taken.read(start, 2 * PAGE) == b"held".ljust(PAGE, b".") + bytes(PAGE)
    with pytest.raises(MemoryUnreadable):
        taken.read(start + 2 * PAGE, 1)


@pytest.mark.parametrize(
    "zeros", ["[1, 2, 3]", "[5, 5]", "[0, 18446744073709551617]", "[-1, 5]", "[1.5, 2]", "7", "{}"]
)
def test_impossible_zeros_are_damage(tmp_path: Path, zeros: str) -> None:
    file = tmp_path / "it"
    write_snapshot.write(MemoryTarget([Mapped(0x10000, PAGE)]), [(0x10000, 0x11000)], "now", str(file))
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**entries, "zeros.jsonl": zeros.encode() + b"\n"}.items():
            archive.writestr(name, content)
    with pytest.raises(TargetError, match="not a whole snapshot"):
        SnapshotTarget(str(file))


def test_what_a_snapshot_holds(tmp_path: Path) -> None:
    target = MemoryTarget([Mapped(0x10000, 0x100000)])
    write_snapshot.write(
        target, [(0x12000, 0x14000), (0x14000, 0x15000), (0x20000, 0x21000)], "now", str(tmp_path / "it")
    )
    taken = SnapshotTarget(str(tmp_path / "it"))
    assert list(taken.populated(0, 1 << 40)) == [(0x12000, 0x15000), (0x20000, 0x21000)]
    assert list(taken.populated(0x13000, 0x20800)) == [(0x13000, 0x15000), (0x20000, 0x20800)]
    assert list(taken.populated(0x15000, 0x20000)) == []
