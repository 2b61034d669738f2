"""What every target promises, asked of each backend on the same process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent
from pieglobalsfind.target import Target, read_many
from pieglobalsfind.targets import open_target
from tests.support.held import Held, gcore, kernel_core

CONTENTS = {
    "rodata": b"held in rodata\0",
    "data": b"held in data\0",
    "zeros": bytes(8192),
    "memfd": b"held in a memfd, across two pages\0",
    "guard": b"held before a guard page\0",
    "heap": b"held on the heap\0",
    "first": b"held on the stack of first\0",
    "second": b"held on the stack of second\0",
}


def elf_bytes(program: Path, symbol: str, size: int) -> bytes:
    """The bytes of a function by objdump."""
    command = ["objdump", "-d", f"--disassemble={symbol}", "--no-addresses", str(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split("\t")[1] for line in output.splitlines() if line.startswith((" \t", "\t"))]
    return bytes.fromhex("".join(rows))[:size]


def test_known_bytes(target: Target, shown: Held) -> None:
    for name, content in CONTENTS.items():
        assert target.read(shown.places[name], len(content)) == content, name
    code = elf_bytes(shown.program, "main", 32)
    assert len(code) == 32
    assert target.read(shown.places["code"], 32) == code


def test_nothing_read(target: Target, shown: Held) -> None:
    assert target.read(shown.places["data"], 0) == b""


def test_across_mappings(target: Target, shown: Held) -> None:
    """From read-only data into what follows it in memory."""
    maps = [mapping for mapping in target.maps() if mapping.path == str(shown.program)]
    for one, following in zip(maps, maps[1:]):
        if one.end == following.start:
            both = target.read(one.end - 16, 32)
            assert both == target.read(one.end - 16, 16) + target.read(one.end, 16)


@pytest.mark.parametrize("address", [0, 0x1000, 1 << 46, (1 << 64) - 1, 1 << 64, -8])
def test_nowhere(target: Target, address: int) -> None:
    for size in (1, 8, 1 << 20, 1 << 40, (1 << 64) - 1):
        with pytest.raises(MemoryUnreadable):
            target.read(address, size)


def test_negative_sizes(target: Target, shown: Held) -> None:
    with pytest.raises(MemoryUnreadable):
        target.read(shown.places["data"], -1)


def test_a_guard_page(target: Target, shown: Held) -> None:
    """All of a read or nothing: what touches the page behind can't be had."""
    page = shown.places["guard"] + 4096
    assert len(target.read(page - 16, 16)) == 16
    if "core.gdb" in target.description:  # gcore reads guard pages too: the core file does hold them
        return
    for address, size in ((page, 1), (page - 16, 32), (page - 16, 8192)):
        with pytest.raises(MemoryUnreadable):
            target.read(address, size)


def test_maps(target: Target, shown: Held) -> None:
    maps = target.maps()
    assert all(mapping.start < mapping.end for mapping in maps)
    assert all(one.end <= following.start for one, following in zip(maps, maps[1:]))
    of = {
        name: [mapping for mapping in maps if mapping.start <= place < mapping.end]
        for name, place in shown.places.items()
    }
    assert {name: len(mappings) for name, mappings in of.items()} == dict.fromkeys(shown.places, 1)
    code, data = of["code"][0], of["data"][0]
    assert (code.path, code.executable, code.writable) == (str(shown.program), True, False)
    assert (data.path, data.executable, data.writable) == (str(shown.program), False, True)
    assert "memfd:held_memory" in of["memfd"][0].path
    assert of["heap"][0].writable
    bases = [mapping.start - mapping.offset for mapping in maps if mapping.path == str(shown.program)]
    assert min(bases) == next(
        mapping.start for mapping in maps if mapping.path == str(shown.program) and mapping.offset == 0
    )


def test_threads(target: Target, shown: Held) -> None:
    """Both wait in pause(): pc in executable memory, sp below a local of theirs and in the same mapping."""
    threads = {thread.tid: thread for thread in target.threads()}
    assert shown.pid in threads
    assert len(threads) == 2
    maps = target.maps()
    stacks = set()
    for one in threads.values():
        assert not isinstance(one.registers, Absent)
        pc, sp = one.registers[16], one.registers[7]
        assert any(mapping.executable and mapping.start <= pc < mapping.end for mapping in maps)
        stacks |= {name for name in ("first", "second") if 0 < shown.places[name] - sp < 4096}
    assert stacks == {"first", "second"}


def test_files(target: Target, shown: Held) -> None:
    output = subprocess.run(
        ["readelf", "-n", shown.program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    build_id = output.partition("Build ID: ")[2].split()[0]
    identity = target.file_identity(str(shown.program))
    assert identity is not None
    assert identity.hex() == build_id
    assert target.file_identity("/nowhere") is None
    assert target.open_path("/nowhere") is None
    place = target.open_path(str(shown.program))
    assert place is not None
    assert Path(place).read_bytes() == shown.program.read_bytes()


def test_a_core_file_holds_what_the_process_held(held: Held, tmp_path: Path) -> None:
    """Every byte of the program's own mappings, of the process and of both kinds of core files of it."""
    live = open_target(pid=held.pid)
    maps = [mapping for mapping in live.maps() if mapping.path == str(held.program)]
    expected = [live.read(mapping.start, mapping.end - mapping.start) for mapping in maps]
    for make in (gcore, kernel_core):
        core = open_target(core=str(make(held, tmp_path)))
        assert [core.read(mapping.start, mapping.end - mapping.start) for mapping in maps] == expected
        mappings = [mapping for mapping in core.maps() if mapping.path == str(held.program)]
        assert [one._replace(writable=False) for one in mappings] == [
            mapping._replace(writable=False) for mapping in maps
        ]
        assert make is gcore or mappings == maps  # gcore calls some read-only memory writable


def test_many_at_once(target: Target, shown: Held) -> None:
    """The same bytes as one by one; what can't be read leaves all others as they are."""
    data = shown.places["data"]
    places = [(data + number % 8, 1 + number % 5) for number in range(3000)]
    for number, bad in ((0, 0), (7, 1 << 63), (1500, (1 << 64) - 2), (2999, 16)):
        places.insert(number, (bad, 4))
    found = read_many(target, places)
    assert len(found) == len(places) and found.count(None) == 4
    for (address, size), content in zip(places, found):
        if content is not None:
            assert content == target.read(address, size)
