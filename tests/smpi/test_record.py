"""`inspector record` on real SMPI jobs: ranks that stand where their source says, and ranks that are switched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.answers import asked
from tests.support.smpi.jobs import FACTORIES, built, command, lacks, needs_smpi, process_of, start
from tests.support.waiting import wait_until

pytestmark = needs_smpi
RANKS, DURATION = 4, "2s"
PASS_ON = ["main", "pass_on", "MPI_Sendrecv_replace"]
WAITS = {
    "c": ["main", "below", "below", "below", "MPI_Recv"],
    "cpp": ["main", "MPI_Recv"],
    "f90": ["user_main", "MPI_Recv"],
}


def recorded(pid: int, folder: Path) -> tuple[Any, dict[str, list[list[str]]]]:
    """What the command says, and by rank the stacks in its file."""
    path = folder / "job.speedscope.json"
    said = asked("record", pid, "--duration", DURATION, "-o", path)
    whole = json.loads(path.read_text())
    names = [one["name"] for one in whole["shared"]["frames"]]
    stacks = {one["name"]: [[names[frame] for frame in stack] for stack in one["samples"]] for one in whole["profiles"]}
    return said, stacks


@pytest.mark.parametrize("way", [*FACTORIES, "cpp", "f90"])
def test_ranks_that_wait(way: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Rank 0 sleeps, in no call of MPI's, for the whole time; all others wait for it."""
    if lacks(way):
        pytest.skip("this SimGrid has no contexts of this kind")
    language = way if way in WAITS else "c"
    options = [f"--cfg=contexts/factory:{way}"] if way in FACTORIES else []
    running = start(start_job, tmp_path, RANKS, built(shared, f"truth.{language}"), options)
    said, stacks = recorded(running.pid, tmp_path)
    for one in said["ranks"]:
        is_first = one["rank"] == 0
        assert one["outside_mpi"] == (said["seconds"] if is_first else 0)
        assert one["calls"] == ({} if is_first else {"MPI_Recv": said["seconds"]})
    for rank in range(1, RANKS):
        assert {tuple(stack) for stack in stacks[f"rank {rank}"]} == {tuple(WAITS[language])}


@pytest.mark.parametrize("factory", ["raw", "thread"])
def test_ranks_that_are_switched_all_the_time(
    factory: str, start_job: StartJob, shared: Shared, tmp_path: Path
) -> None:
    """Whenever a rank is looked at, it is in the one call that its loop makes, or between two of them."""
    job = start_job(*command(tmp_path, RANKS, built(shared, "busy.c"), f"--cfg=contexts/factory:{factory}"))
    job.wait_for("ready")
    pid = wait_until(lambda: process_of(job), "smpirun has started no smpimain")
    said, stacks = recorded(pid, tmp_path)
    assert said["samples"] > 0
    for one in said["ranks"]:
        assert set(one["calls"]) == {"MPI_Sendrecv_replace"}
        assert one["calls"]["MPI_Sendrecv_replace"] >= said["seconds"] / 2
    for of_rank in (stacks[f"rank {rank}"] for rank in range(RANKS)):
        # The rank that says "ready" may still be in fflush().
        whole = [stack for stack in of_rank if stack[:1] == ["main"] and not "".join(stack[1:2]).endswith("fflush")]
        assert len(whole) >= len(of_rank) / 2  # one runs, perhaps in code without unwind information
        assert all(stack[: len(PASS_ON)] == PASS_ON[: len(stack)] for stack in whole), whole
