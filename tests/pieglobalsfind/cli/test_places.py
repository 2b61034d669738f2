"""The command against what ranks say of themselves, and against binutils for symbols and lines."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.model import BLOCKED
from pieglobalsfind.targets import open_target
from tests.support.places import Command, Place, Places, StartPlaces, gcore

SOURCES = ("places.c", "places.cpp", "places.f90")


def line_of(program: Path, vaddr: int) -> str:
    """FILE:LINE of code by binutils' addr2line."""
    command = ["addr2line", "-e", str(program), f"{vaddr:#x}"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return output.split()[0]


def names_of(program: Path) -> dict[int, set[str]]:
    """Demangled names by vaddr, by binutils' nm."""
    command = ["nm", "-C", "--defined-only", str(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found: dict[int, set[str]] = {}
    for line in output.splitlines():
        value, _, name = line.split(" ", 2)
        found.setdefault(int(value, 16), set()).add(name)
    return found


def check(record: dict[str, Any], place: Place, places: Places) -> None:
    """One answer against what the rank printed and what binutils say of the program's file."""
    said = f"{place} but {record}"
    assert record["kind"] == place.kind, said
    assert record["rank"] == (None if place.kind == "runtime" else place.rank), said
    assert record["tier"] == (None if place.kind == "runtime" else "registry"), said
    if place.name == "-":
        assert record["symbol"] is None, said
        return
    assert record["symbol"] == place.name, said
    assert record["symbol_offset"] == place.offset or place.offset < 0, said
    if place.kind == "runtime":
        assert record["object"].endswith("librankmpi.so"), said
        return
    assert record["object"] == str(places.program), said
    assert int(record["original"], 16) - record["offset"] == base_of(places), said
    if place.kind == "code":
        assert f"{record['file']}:{record['line']}" == line_of(places.program, record["offset"]), said
    elif place.name != "vtable for app::Square":
        assert record["file"].endswith((".c", ".cpp", ".f90")), said


def base_of(places: Places) -> int:
    """Where the system's loader placed the program, by /proc/PID/maps as it was before the ranks had copies."""
    if places.job.process.poll() is None:
        for line in Path(f"/proc/{places.job.pid}/maps").read_text().splitlines():
            if line.endswith(str(places.program)):
                return int(line.partition("-")[0], 16)
    raise AssertionError("the program is not mapped")


@pytest.mark.parametrize("source", SOURCES)
def test_every_place(source: str, start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """Live and on a core file, each address that each rank printed."""
    places = start_places(source)
    live = find.records("--pid", places.job.pid, *places.addresses)
    for record, place in zip(live, places.places):
        check(record, place, places)
    assert find.records("--core", gcore(places.job, tmp_path), *places.addresses) == live


@pytest.mark.parametrize("source", SOURCES)
def test_symbols_as_nm_has_them(source: str, start_places: StartPlaces, find: Command) -> None:
    """Linkage names aside, what begins at an address has the name that nm gives it there."""
    places = start_places(source, ranks=2)
    names = names_of(places.program)
    functions = [place for place in places.places if place.kind == "code" and place.offset == 0]
    for record, _ in zip(
        find.records("--pid", places.job.pid, *(hex(function.address) for function in functions)), functions
    ):
        written = {name.removeprefix("__").replace("_MOD_", "::").rstrip("_") for name in names[record["offset"]]}
        assert record["symbol"] in written | names[record["offset"]]


def test_every_function_in_every_rank(start_places: StartPlaces, find: Command) -> None:
    """All code symbols of the program, at their first byte and within, in each rank: binutils' function and line."""
    found = start_places("places.c", ranks=2)
    target = found.place("add", 1)
    copy = target.address - vaddr_of(found.program, "add")
    places = [start + step for start, size in functions_of(found.program) for step in (0, size // 2, size - 1)]
    records = find.records("--pid", found.job.pid, *(hex(copy + place) for place in places))
    command = ["addr2line", "-f", "-e", str(found.program), *map(hex, places)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert len(places) >= 12
    for record, function, line in zip(records, output[0::2], output[1::2]):
        assert (record["symbol"], record["rank"]) == (function, 1)
        assert f"{record['file']}:{record['line']}" == line.partition(" ")[0]


def functions_of(program: Path) -> list[tuple[int, int]]:
    """(start, size) of the functions that the source defines, by nm."""
    command = ["nm", "-S", "--defined-only", str(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split() for line in output.splitlines()]
    own = {"add", "show", "place", "callee", "main"}
    return [(int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[3] in own]


def vaddr_of(program: Path, name: str) -> int:
    return next(vaddr for vaddr, names in names_of(program).items() if name in names)


def test_the_original_is_pristine(start_places: StartPlaces, find: Command) -> None:
    """What the answer calls the original holds the value of before there were ranks, the rank's place its own."""
    places = start_places("places.c")
    place = places.place("counter", 2)
    (record,) = find.records("--pid", places.job.pid, hex(place.address))
    target = open_target(pid=places.job.pid)
    original = int(record["original"], 16)
    assert int.from_bytes(target.read(place.address, 4), "little") == 102
    assert int.from_bytes(target.read(original, 4), "little") == 5
    (asked,) = find.records("--pid", places.job.pid, record["original"])
    assert (asked["kind"], asked["rank"], asked["symbol"]) == ("original", None, "counter")


def test_suspended_ranks(start_places: StartPlaces) -> None:
    """Every rank waits in MPI_Recv for its neighbour, and its context leads into its own stack."""
    from pieglobalsfind.decoders import decode
    from pieglobalsfind.stacks.saved_registers import Contexts

    places = start_places("places.c")
    target = open_target(pid=places.job.pid)
    table = decode(target)
    contexts = Contexts(target, table)
    for rank in table.ranks:
        assert rank.state == BLOCKED
        assert rank.waiting is not None
        assert (rank.waiting.call, rank.waiting.peer, rank.waiting.tag) == ("MPI_Recv", (rank.rank + 1) % 3, 7)
        local = next(place.address for place in places.places if place.rank == rank.rank and place.kind == "stack")
        assert 0 < local - contexts.registers(rank)[7] < 1 << 16
