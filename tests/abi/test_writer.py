"""A runtime that knows the headers alone: what it writes is what GDB and the inspector show."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.gdb.session import Session
from tests.support.running import BIN, ROOT, Job, StartJob

HOOKS = ROOT / "runtime-hooks"
PROGRAMS = Path(__file__).parent / "programs"
FLAGS = ("-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{HOOKS / 'include'}")
TURNS = 5
VALUES = {
    "counter": ["5", "10"],
    "my_rank": ["0", "1"],
    "values": ["{2.5, 1, 1.5, 2}", "{5, 2, 3, 4}"],
}


@pytest.fixture
def job(tmp_path: Path, start_job: StartJob) -> Job:
    program, runtime = tmp_path / "program.so", tmp_path / "two_copies"
    build(program, "-shared", "-fPIC", PROGRAMS / "two_copies_program.c")
    build(runtime, PROGRAMS / "two_copies.c", *(HOOKS / "src").glob("*.c"), "-ldl")
    found = start_job(runtime, program, TURNS)
    found.wait_for("ready")
    return found


def build(result: Path, *words: object) -> None:
    subprocess.run(["gcc", *FLAGS, "-o", str(result), *map(str, words)], check=True, timeout=60)


def inspect(command: str, job: Job) -> Any:
    done = subprocess.run([BIN / "inspector", command, str(job.pid), "--json"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_its_ranks_are_shown(job: Job, gdb: Path, tmp_path: Path) -> None:
    ranks = inspect("ranks", job)["ranks"]
    assert [rank["state"] for rank in ranks] == ["blocked", "blocked"]
    waiting = [rank["waiting"] for rank in ranks]
    assert [(one["call"], one["peer"], one["tag"]) for one in waiting] == [("MPI_Recv", 1, 7), ("MPI_Recv", 0, 7)]
    found = {one["name"]: one for one in inspect("globals", job)["globals"]}
    assert {name: [group["value"] for group in found[name]["groups"]] for name in VALUES} == VALUES
    assert {found[name]["verdict"] for name in VALUES} == {"differs"}
    answers = Session(gdb, tmp_path).attach(
        """
tell("values", [[ask(f"rank print {name} {rank}") for rank in (0, 1)] for name in ("counter", "my_rank", "values")])
ask("rank 1")
tell("functions", functions())
tell("value", value("counter"))
""",
        job.pid,
    )
    assert answers["values"] == [[f"{rank}: {one}\n" for rank, one in enumerate(both)] for both in VALUES.values()]
    functions = answers["functions"][: answers["functions"].index("rank_entry") + 1]
    assert functions[-4:] == ["wait_in_call", "work", "program_main", "rank_entry"] and answers["value"] == 10
