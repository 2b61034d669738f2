"""Every command on every kind of target, in every language, against what the program prints itself."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Union

import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.session import Session as GdbSession
from tests.support.lldb.session import Session as LldbSession
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.answers import TARGETS, asked, owners, snapshot, values_in
from tests.support.smpi.jobs import Running, built, needs_smpi, start

pytestmark = [needs_smpi, pytest.mark.timeout(600)]
RANKS = 4
LANGUAGES = {  # the innermost calls of a rank that waits, from main on
    "c": ["main", "below", "below", "below", "MPI_Recv"],
    "cpp": ["main", "MPI_Recv"],
    "f90": ["user_main", "mpi_recv_"],
}
Target = Union[int, Path]


def bytes_written(program: Path) -> int:
    """Of the segments that readelf calls writable."""
    said = subprocess.run(["readelf", "-lW", str(program)], capture_output=True, text=True, check=True).stdout
    return sum(int(size, 16) for size in re.findall(r"^ +LOAD +(?:0x\w+ +){4}(0x\w+) RW ", said, re.MULTILINE))


def check_report(target: Target, running: Running, program: Path) -> None:
    """States, waits, values and payload."""
    found = asked("report", target)
    verdict = found["verdict"]
    if isinstance(target, Path) and target.name == "core":  # which the kernel wrote for a signal
        assert verdict["kind"] == "crash" and verdict["sentence"].startswith("rank 0 ended by SIGABRT in "), verdict
    else:
        assert verdict["kind"] == "healthy", verdict
    assert {one["rank"]: one["state"] for one in found["ranks"]} == {
        0: "running",
        1: "blocked",
        2: "blocked",
        3: "blocked",
    }
    for one in found["ranks"][1:]:
        waiting = one["waiting"]
        assert (waiting["call"], waiting["peer"], waiting["tag"]) == ("MPI_Recv", 0, 9)
    values = values_in(found)
    for truth in running.told:
        if truth.name != "stack":
            assert values[truth.name][truth.rank] == str(truth.value), (truth, values)
    written = bytes_written(program)
    for one in found["payload"]:
        assert one["relro"] + one["data"] + one["bss"] == written
        parts = (one[name] for name in ("code", "rodata", "relro", "data", "bss", "tls", "gaps"))
        assert one["total"] == sum(parts) + one["stack_used"] + one["stack_unused"]


def check_stacks(target: Target, calls: list[str]) -> None:
    (waiting,) = asked("stacks", target, "--rank", "1-3")["stacks"]
    assert (waiting["ranks"], [one["function"] for one in waiting["calls"]]) == ("1-3", calls)
    (runs,) = asked("stacks", target, "--rank", "0")["stacks"]
    assert [one["function"] for one in runs["calls"]][: len(calls) - 1] == calls[:-1]
    found = asked("waits", target)
    assert {one["rank"]: one["for"] for one in found["waits"]} == {1: 0, 2: 0, 3: 0} and found["cycles"] == []


def check_difference(target: Target, running: Running, calls: list[str]) -> None:
    found = asked("why-different", 0, 2, target)
    assert [one["function"] for one in found["apart"][1]][-1:] == calls[-1:]
    values = {one["name"]: one["values"] for one in found["variables"]}
    for name in {truth.name for truth in running.told} - {"stack"}:
        told = running.variable(name)
        assert values[name] == [str(told[0].value), str(told[2].value)]


def check_owners(target: Target, running: Running) -> None:
    for truth, line in zip(running.told, owners(target, *(truth.address for truth in running.told))):
        kind = "stack" if truth.name == "stack" else "tls" if truth.name.endswith("t_rank") else "data"
        assert f"rank {truth.rank}  {kind}" in line, line


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("how", TARGETS)
def test_every_command(how: str, language: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    program, calls = built(shared, f"truth.{language}"), LANGUAGES[language]
    running = start(start_job, tmp_path, RANKS, program)
    target = TARGETS[how](running, tmp_path)
    check_report(target, running, program)
    check_stacks(target, calls)
    check_difference(target, running, calls)
    check_owners(target, running)


@pytest.mark.parametrize("language", ["cpp", "f90"])
def test_values_and_stacks_of_data_that_is_remapped(
    language: str, start_job: StartJob, shared: Shared, tmp_path: Path
) -> None:
    """As test_ranks.py has it in C; the program's thread_local is one for all ranks."""
    options = ["--cfg=smpi/privatization:mmap"]
    running = start(start_job, tmp_path, RANKS, built(shared, f"truth.{language}"), options)
    for target in (running.pid, snapshot(running, tmp_path)):
        values = values_in(asked("globals", target))
        for truth in running.told:
            if truth.name != "stack" and not truth.name.endswith("t_rank"):
                assert values[truth.name][truth.rank] == str(truth.value)
        check_stacks(target, LANGUAGES[language])


ASKED = {  # by debugger: every rank's variables by one command, one rank's own by its own, and that rank's calls
    "gdb": """
tell("all", {name: ask("rank print " + name) for name in NAMES})
ask("rank 2")
tell("one", {name: value(name) for name in NAMES})
tell("calls", ask("bt"))
""",
    "lldb": """
tell("all", {name: ask("rank print " + name) for name in NAMES})
ask("rank 2")
tell("one", {name: int(printed("p " + name).split()[-1]) for name in NAMES})
tell("calls", ask("bt"))
""",
}


def debugger_says(debugger: str, gdb: Path, folder: Path, target: Target, program: Path, names: list[str]) -> Any:
    script = f"NAMES = {names!r}\n{ASKED[debugger]}"
    session = GdbSession(gdb, folder) if debugger == "gdb" else LldbSession(find_lldb(), folder)
    if isinstance(target, int):
        return session.attach(script, target)
    if debugger == "gdb":
        return session.run(script, program, target)
    return session.run(script, "-c", target)


@pytest.mark.parametrize("privatization", ["dlopen", "mmap"])
@pytest.mark.parametrize("debugger", ASKED)
def test_a_debugger_s_values(
    debugger: str, privatization: str, gdb: Path, start_job: StartJob, shared: Shared, tmp_path: Path
) -> None:
    """Globals, statics and, where each rank has its own, thread-locals: live, then in the kernel's core file."""
    program = built(shared, "truth.c")
    running = start(start_job, tmp_path, RANKS, program, [f"--cfg=smpi/privatization:{privatization}"])
    names = ["g_rank", "s_rank", *(["t_rank"] if privatization == "dlopen" else [])]
    for how in ("live", "kernel"):
        told = debugger_says(debugger, gdb, tmp_path, TARGETS[how](running, tmp_path), program, names)
        for name in names:
            values = {rank: truth.value for rank, truth in running.variable(name).items()}
            assert told["all"][name].splitlines() == [f"{rank}: {value}" for rank, value in values.items()], how
            assert told["one"][name] == values[2], how
        assert "below" in told["calls"] and "MPI_Recv" in told["calls"] and "main" in told["calls"]
