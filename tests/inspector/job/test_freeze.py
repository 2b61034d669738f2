"""`--freeze`: the process stands still while it is read, and always goes on afterwards, however the inspector ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.targets.frozen import FrozenTarget
from tests.support.running import Job, StartJob, built
from tests.support.waiting import wait_until_it_loops

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
volatile unsigned long before, after;
static void spin(void) {
    for (;;) {
        before++;
        after++;
    }
}
int main(int argc, char **argv) {
    int rank, nothing;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2)
        MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    spin();
    return 0;
}
"""
RANKS, ELEMENTS = 4, 2  # ranks 0 and 2 spin, each on a kernel thread of its own


@pytest.fixture
def busy(start_job: StartJob, tmp_path: Path) -> Job:
    source, program = tmp_path / "busy.c", tmp_path / "busy"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, "--pes", ELEMENTS, program)
    job.wait_for("ready", times=2)
    wait_until_it_loops(job.pid, threads=2)
    return job


def states(pid: int) -> set[str]:
    """The kernel's letters for the states of the process's threads."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        found.add((task / "stat").read_text().rpartition(") ")[2].split()[0])
    return found


def inspected(*words: object) -> tuple[Any, str]:
    command = [str(one) for one in (built("inspector"), *words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_all_figures_are_of_one_moment(busy: Job) -> None:
    for _ in range(5):
        found, said = inspected("globals", busy.pid, "--freeze", "--json")
        assert "stood still for" in said
        values = {
            one["name"]: {group["ranks"]: int(group["value"]) for group in one["groups"]} for one in found["globals"]
        }
        for ranks, before in values["before"].items():
            if ranks in ("0", "2"):
                assert before - values["after"][ranks] in (0, 1)
    wait_until_it_loops(busy.pid)


def test_running_ranks_have_stacks(busy: Job) -> None:
    found, _ = inspected("stacks", busy.pid, "--freeze", "--json")
    spinning = [one for one in found["stacks"] if [call["function"] for call in one["calls"]] == ["main", "spin"]]
    assert sorted(",".join(one["ranks"] for one in spinning).split(",")) == ["0", "2"]  # on one line, or on two
    assert found["missing"] == []
    wait_until_it_loops(busy.pid)


def test_it_stands_still_and_goes_on(busy: Job) -> None:
    with FrozenTarget(busy.pid) as target:
        assert states(busy.pid) == {"t"}
        assert len(target.threads()) == ELEMENTS
        assert not target.is_live
    assert "t" not in states(busy.pid)
    wait_until_it_loops(busy.pid)


def test_it_goes_on_when_the_inspector_is_killed(busy: Job) -> None:
    script = (
        "import sys\nfrom pieglobalsfind.targets.frozen import FrozenTarget\n"
        "target = FrozenTarget(int(sys.argv[1]))\nprint('frozen', flush=True)\nsys.stdin.read()\n"
    )
    python = str(built("python"))
    holder = subprocess.Popen(
        [python, "-c", script, str(busy.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"frozen\n"
    assert states(busy.pid) == {"t"}
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    wait_until_it_loops(busy.pid)
    assert "t" not in states(busy.pid)


def refused(target: object) -> str:
    command = [str(built("inspector")), "ranks", str(target), "--freeze"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    return done.stderr


def test_what_cant_be_frozen(busy: Job, tmp_path: Path) -> None:
    with FrozenTarget(busy.pid):
        assert f"is being traced by process {os.getpid()}" in refused(busy.pid)
    (tmp_path / "file").write_text("x")
    assert "stands still already" in refused(tmp_path / "file")
