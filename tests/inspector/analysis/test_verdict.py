"""The verdict of `inspector report`: real crashes, deadlocks and imbalances, each of which the test makes itself."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inspector.analysis.global_values import DIFFERS, GlobalValues, Group, by_rarity, outliers
from inspector.analysis.report_schema import SCHEMA
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job
from tests.support.sharing import Shared

SOURCE = SOURCES / "crash.c"
DIES = 3  # the rank that does, of four
SIGNALS = {6: "SIGABRT", 11: "SIGSEGV"}
IDLE = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    return MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"""


def text_of(*words: object) -> str:
    command = [str(BIN / "inspector"), "report", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(*words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(*words, "--json"))
    jsonschema.validate(found, SCHEMA)
    return found


def line_of(source: Path, mark: str) -> int:
    return next(number for number, line in enumerate(source.read_text().splitlines(), 1) if mark in line)


def core_and_signal(folder: Path, shared: Shared, rankcc: Path, rankrun: Path, gdb: Path, how: str) -> tuple[Path, str]:
    """A core that GDB writes at the signal, and what GDB itself prints of that."""
    program = shared.copied([rankcc, "-g", SOURCE], folder / "crash.so")
    core = folder / "core"
    print_signal = 'printf "signal %d at %p\\n", $_siginfo.si_signo, $_siginfo._sifields._sigfault.si_addr'
    words = [gdb, "-nx", "-q", "-batch", "-ex", "run", "-ex", print_signal, "-ex", f"gcore {core}"]
    command = [*words, "--args", rankrun, "-n", DIES + 1, program, how]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r"signal (\d+) at (\S+)", done.stdout)
    assert match is not None and core.exists(), done.stdout + done.stderr
    return core, f"{SIGNALS[int(match[1])]} {match[2]}"


@pytest.mark.parametrize(
    ("how", "diagnosis"),
    [("null", "null-pointer"), ("free", "foreign-free"), ("stack", "stack-overflow"), ("constant", "constant-written")],
)
def test_a_crash_is_a_verdict(
    how: str, diagnosis: str, tmp_path: Path, shared: Shared, rankcc: Path, rankrun: Path, gdb: Path
) -> None:
    core, signal = core_and_signal(tmp_path, shared, rankcc, rankrun, gdb, how)
    found = report(core)
    (crash,) = found["crashes"]
    assert (found["verdict"]["kind"], found["verdict"]["ranks"]) == ("crash", str(DIES))
    assert crash["rank"] == DIES
    assert crash["diagnosis"]["id"] == found["verdict"]["diagnoses"][0] == diagnosis
    if crash["address"] is None:
        assert crash["signal"] == signal.split()[0]
        assert crash["message"] == "munmap_chunk(): invalid pointer"
    else:
        assert f"{crash['signal']} {crash['address']}" == signal
    if how != "stack":
        assert crash["place"] == f"die at crash.c:{line_of(SOURCE, f'/* {how} */')}"
    headline = next(line for line in text_of(core).splitlines() if line.startswith("crash: "))
    assert f"rank {DIES} ended by {crash['signal']} in " in headline


def test_a_core_of_a_job_that_waits_is_no_crash(start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "halves.c", ranks=12)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(job.pid)], check=True, capture_output=True, timeout=120)
    found = report(tmp_path / f"core.{job.pid}")
    assert found["crashes"] == []
    assert found["verdict"]["kind"] == "deadlock"


def test_a_deadlock_is_a_verdict(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "halves.c", ranks=12)
    verdict = report(job.pid)["verdict"]
    assert (verdict["kind"], verdict["ranks"]) == ("deadlock", "0,3")
    assert verdict["sentence"].startswith("ranks 0,3 wait for one another, 0 -> 3 -> 0")
    assert verdict["command"] == f"inspector waits {job.pid}"
    assert "\ndeadlock: ranks 0,3 wait for one another, 0 -> 3 -> 0" in text_of(job.pid)


def test_a_standstill_is_a_verdict(start_ranks: StartRanks, tmp_path: Path) -> None:
    source = tmp_path / "idle.c"
    source.write_text(IDLE)
    verdict = report(start_ranks(source, ranks=4).pid)["verdict"]
    assert (verdict["kind"], verdict["ranks"]) == ("standstill", "0-3")


def test_many_that_wait_for_one_that_runs_are_an_imbalance(start_ranks: StartRanks) -> None:
    """The same program under two ranks, of which one waits, is healthy."""
    job = start_ranks(SOURCES / "waits.c", ranks=8, loops=True)
    verdict = report(job.pid)["verdict"]
    assert (verdict["kind"], verdict["ranks"]) == ("imbalance", "7")
    assert "7 of 8 ranks wait for rank 7 (rank 7 is in turn at waits.c:" in verdict["sentence"]
    assert verdict["command"] == f"inspector stacks {job.pid} --rank 7"
    assert report(start_ranks(SOURCES / "waits.c", ranks=2, loops=True).pid)["verdict"]["kind"] == "healthy"


def variable(name: str, *groups: tuple[int, ...]) -> GlobalValues:
    values = tuple(Group(ranks, str(number)) for number, ranks in enumerate(groups))
    return GlobalValues(name, "solver", "solver.c", 3, "int", 4, "data", values, DIFFERS)


def test_what_few_ranks_differ_in_comes_first() -> None:
    counts = variable("my_rank", *((rank,) for rank in range(64)))
    parity = variable("parity", tuple(range(0, 64, 2)), tuple(range(1, 64, 2)))
    edges = variable("edges", (0, 63), tuple(range(1, 63)))
    alone = variable("residual", tuple(rank for rank in range(64) if rank != 37), (37,))
    ordered = by_rarity([counts, parity, edges, alone])
    assert [global_values.name for global_values in ordered] == ["residual", "edges", "parity", "my_rank"]
    assert [outliers(global_values) for global_values in ordered] == [(37,), (0, 63), (), ()]


def test_findings_name_the_rank_that_differs(start_ranks: StartRanks) -> None:
    job: Job = start_ranks(SOURCES / "ranks.c", ranks=4)
    finding = report(job.pid)["verdict"]["findings"][0]
    assert len(finding["ranks"]) == 1
    assert re.match(r"\w+: rank \d alone has .*, the other 3 have ", finding["sentence"])
