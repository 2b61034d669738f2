"""Every tool, on a live job and on its core file, says of each rank what the rank says of itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.methods.matrix import METHODS, RUNNING, SOURCES, SUSPENDED, VARIABLES, impossible
from tests.methods.table import Record
from tests.support.debuggers import find_lldb
from tests.support.gdb.session import Session as Gdb
from tests.support.lldb.session import Session as Lldb
from tests.support.methods import Held, Truth
from tests.support.running import built

EXPRESSIONS = {"counter": "'function_static()'::counter", "inlined": "simulation::inlined"}
NAMES = {"counter": "function_static()::counter", "inlined": "simulation::inlined"}

each_method = pytest.mark.parametrize("method", METHODS)
each_source = pytest.mark.parametrize("source", SOURCES)
CXX = tuple(name for name in VARIABLES if name != "common_value")


@pytest.fixture
def record(method: str, source: str, record_property: Callable[[str, object], None]) -> Record:
    return Record(method, source, record_property)


def asked(held: Held, variables: tuple[str, ...], tool: str, source: str) -> list[str]:
    """The variables that this tool can be asked for under this method."""
    return [name for name in variables if not impossible(held.method, tool, source, VARIABLES[name])]


# ---- inspector ----


def inspector(part: str, held: Held, source: str) -> dict[int, Any]:
    """What is said of each rank's job or core file; each of these is asked about once."""
    targets = {rank: held.job.pid if source == "live" else held.core_of(rank) for rank in held.truth}
    found = {}
    for target in set(targets.values()):
        command = [str(built("inspector")), part, str(target), "--json"]
        found[target] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    return {rank: found[target] for rank, target in targets.items()}


def value_on(found: list[dict[str, Any]], name: str, rank: int) -> str:
    variable = next(one for one in found if one["name"].lower() == name)  # a common block has one in every unit
    for group in variable["groups"]:
        for part in group["ranks"].split(","):
            first, _, last = part.partition("-")
            if int(first) <= rank <= int(last or first):
                return str(group["value"])
    return "no value"


@each_source
@each_method
def test_inspector(method: str, source: str, held: Held, record: Record) -> None:
    found = inspector("globals", held, source)
    for rank, truth in held.truth.items():
        for name in asked(held, CXX, "inspector", source):
            assert value_on(found[rank]["globals"], NAMES.get(name, name), rank) == str(truth[name].value), (rank, name)
    for name in asked(held, CXX, "inspector", source):
        record("inspector", VARIABLES[name])
    stacks = {rank: whole_stack(one, rank) for rank, one in inspector("stacks", held, source).items()}
    for rank, stack in stacks.items():
        if rank != held.running or not impossible(method, "inspector", source, RUNNING):
            assert stack[:2] == ["main", "hold"], (rank, stack)
            record("inspector", RUNNING if rank == held.running else SUSPENDED)


def whole_stack(found: dict[str, Any], rank: int) -> list[str]:
    """The functions of a rank's stack, outermost first."""
    for group in found["stacks"]:
        if rank in ranks_of(group["ranks"]):
            return [call["function"] for call in group["calls"]]
    return []


def ranks_of(text: str) -> set[int]:
    ends = (part.partition("-") for part in text.split(",") if part)
    return {rank for first, _, last in ends for rank in range(int(first), int(last or first) + 1)}


@each_source
@each_method
def test_inspector_fortran(method: str, source: str, held_fortran: Held, record: Record) -> None:
    found = inspector("globals", held_fortran, source)
    for rank, truth in held_fortran.truth.items():
        assert value_on(found[rank]["globals"], "common_value", rank) == str(truth["common_value"].value)
    record("inspector", VARIABLES["common_value"])


# ---- pieglobalsfind ----


def answers(held: Held, source: str, process: int, asked: list[tuple[int, str]]) -> list[Any]:
    """What is said of the variables' addresses, which ranks of a process have printed."""
    target = ["--pid", process] if source == "live" else ["--core", held.core_of(asked[0][0])]
    addresses = (f"{held.truth[rank][name].address:#x}" for rank, name in asked)
    command = [built("pieglobalsfind"), *target, "--json", *addresses]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_addresses(held: Held, source: str, names: list[str], record: Record) -> None:
    for process, ranks in held.by_process().items():
        asked = [(rank, name) for rank in ranks for name in names]
        found = answers(held, source, process, asked)
        assert len(found) == len(asked)
        for (rank, name), answer in zip(asked, found):
            assert answer["symbol"] == NAMES.get(name, name) and answer["symbol_offset"] == 0, answer
            users = [other for other, its in held.truth.items() if its[name].address == held.truth[rank][name].address]
            assert answer["rank"] == (rank if users == [rank] else None), answer
    for name in names:
        record("pieglobalsfind", VARIABLES[name])


@each_source
@each_method
def test_pieglobalsfind(method: str, source: str, held: Held, record: Record) -> None:
    check_addresses(held, source, asked(held, CXX, "pieglobalsfind", source), record)


@each_source
@each_method
def test_pieglobalsfind_fortran(method: str, source: str, held_fortran: Held, record: Record) -> None:
    check_addresses(held_fortran, source, ["common_value"], record)


# ---- GDB and LLDB ----

GDB_SCRIPT = """
def callers(frame):
    while frame is not None:
        yield frame.name()
        frame = frame.older()

for rank in {ranks}:
    tell("select %d" % rank, ask("rank %d" % rank))
    tell("bt %d" % rank, [name for name in callers(gdb.selected_frame()) if name])
    for name, expression in {expressions}.items():
        tell("%s %d" % (name, rank), ask("output " + expression))
        tell("&%s %d" % (name, rank), ask("output/d (long)&" + expression))
"""
LLDB_SCRIPT = """
for rank in {ranks}:
    ask("rank %d" % rank)
    tell("bt %d" % rank, [name or "" for name in functions(process.GetSelectedThread())])
    for name, expression in {expressions}.items():
        tell("%s %d" % (name, rank), ask("rank print %d %s" % (rank, expression)))
"""
LLDB_NAMES = {"inlined": "simulation::inlined"}


def check_stacks(told: Any, tool: str, ranks: list[int], held: Held, record: Record) -> None:
    for rank in ranks:
        names = [name.partition("(")[0].lstrip(":") for name in told[f"bt {rank}"]]
        assert "hold" in names, (rank, names, told.output)
        at = names.index("hold")
        assert names[at + 1] == "main", (rank, names)
        record(tool, RUNNING if rank == held.running else SUSPENDED)


def place_to_look(held: Held, source: str, process: int, rank: int) -> tuple[object, ...]:
    return ("-p", process) if source == "live" else (built("rankrun").resolve(), "-c", held.core_of(rank))


@each_source
@each_method
def test_gdb(method: str, source: str, held: Held, record: Record, gdb: Path, tmp_path: Path) -> None:
    names = asked(held, CXX, "GDB", source)
    expressions = {name: EXPRESSIONS.get(name, name) for name in names}
    for process, ranks in held.by_process().items():
        script = GDB_SCRIPT.format(ranks=ranks, expressions=expressions)
        told = Gdb(gdb, tmp_path).run(script, *place_to_look(held, source, process, ranks[0]))
        for rank in ranks:
            for name in names:
                truth = held.truth[rank][name]
                shown = Truth(int(told[f"&{name} {rank}"]), int(told[f"{name} {rank}"]))
                assert shown == truth, (rank, name, told.output)
        check_stacks(told, "GDB", ranks, held, record)
    for name in names:
        record("GDB", VARIABLES[name])


@each_source
@each_method
def test_gdb_fortran(method: str, source: str, held_fortran: Held, record: Record, gdb: Path, tmp_path: Path) -> None:
    held = held_fortran
    for process, ranks in held.by_process().items():
        script = f"""
            for rank in {ranks}:
                ask("rank %d" % rank)
                while gdb.selected_frame().name() != "kinds":
                    gdb.selected_frame().older().select()
                tell("%d" % rank, ask("output common_value"))
        """
        told = Gdb(gdb, tmp_path).run(script, *place_to_look(held, source, process, ranks[0]))
        assert [int(told[str(rank)]) for rank in ranks] == [held.truth[rank]["common_value"].value for rank in ranks]
    record("GDB", VARIABLES["common_value"])


@each_source
@each_method
def test_lldb(method: str, source: str, held: Held, record: Record, tmp_path: Path) -> None:
    names = asked(held, CXX, "LLDB", source)
    expressions = {name: LLDB_NAMES.get(name, name) for name in names}
    for process, ranks in held.by_process().items():
        script = LLDB_SCRIPT.format(ranks=ranks, expressions=expressions)
        told = Lldb(find_lldb(), tmp_path).run(script, *place_to_look(held, source, process, ranks[0]))
        for rank in ranks:
            for name in names:
                shown = told[f"{name} {rank}"].strip()
                assert shown.split(" (")[0] == f"{rank}: {held.truth[rank][name].value}", (name, told.output)
        check_stacks(told, "LLDB", ranks, held, record)
    for name in names:
        record("LLDB", VARIABLES[name])
