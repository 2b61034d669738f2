"""Which ranks SMPI's ranks wait for, by SMPI's own requests, against what the program says in its calls."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import StartJob
from tests.support.running import built as command_of_ours
from tests.support.sharing import Shared
from tests.support.smpi.answers import TARGETS, asked
from tests.support.smpi.jobs import FACTORIES, built, lacks, needs_smpi, start

pytestmark = needs_smpi
RANKS = 15
ANY, NONE = -1, -2
# By rank: the call; the peer by its rank in MPI_COMM_WORLD, the tag, and whether it is sent, of each message.
CALLS = {
    1: ("MPI_Recv", {(2, 41, False)}),
    2: ("MPI_Ssend", {(1, 43, True)}),
    3: ("MPI_Recv", {(0, 9, False)}),  # 1 of another communicator
    4: ("MPI_Waitall", {(5, 7, False), (0, 8, False)}),
    5: ("MPI_Waitany", {(4, 7, False), (0, 8, False)}),
    7: ("MPI_Recv", {(ANY, ANY, False)}),
    8: ("MPI_Wait", {(0, 77, False)}),
    9: ("MPI_Probe", {(4, 5, False)}),
    10: ("MPI_Barrier", {(0, NONE, None)}),
    11: ("MPI_Sendrecv", {(0, 12, False)}),
    12: ("MPI_Waitall", {(0, 60, False), (13, 61, True)}),
    13: ("MPI_Waitall", {(0, 60, False), (12, 61, True)}),
    14: ("MPI_Wait", {(0, 62, True)}),
}


def waiting_of(ranks: dict[int, Any]) -> dict[int, Any]:
    return {rank: one["waiting"] for rank, one in ranks.items() if one["waiting"]}


def messages(waiting: Any) -> set[tuple[int, int, object]]:
    return {(one["peer"], one["tag"], one["sent"]) for one in (waiting, *waiting["others"])}


LIVE = [("live", factory) for factory in FACTORIES]
FILES = [("gcore", "raw"), ("kernel", "raw"), ("kernel", "thread"), ("snapshot", "raw"), ("snapshot", "thread")]


@pytest.mark.parametrize(("how", "factory"), [*LIVE, *FILES])
def test_every_kind_of_wait(how: str, factory: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    if lacks(factory):
        pytest.skip("this SimGrid has no contexts of this kind")
    options = [f"--cfg=contexts/factory:{factory}"]
    running = start(start_job, tmp_path, RANKS, built(shared, "waits.c"), options)
    target = TARGETS[how](running, tmp_path)
    ranks = {one["rank"]: one for one in asked("ranks", target)["ranks"]}
    states = {rank: one["state"] for rank, one in ranks.items()}
    assert states == {0: "running", 6: "exited", **dict.fromkeys(CALLS, "blocked")}
    told = waiting_of(ranks)
    assert {rank: (one["call"], messages(one)) for rank, one in told.items()} == CALLS
    assert [rank for rank, one in told.items() if one["needs_one"]] == [5]
    found = asked("waits", target)
    assert found["cycles"] == [[1, 2], [12, 13]]
    (barrier,) = found["collectives"]
    assert (barrier["inside"], barrier["members"], barrier["needed"]) == ("10", f"0-{RANKS - 1}", "0-9,11-14")
    assert {one["rank"]: one["for"] for one in found["waits"]}.items() >= {1: 2, 2: 1, 3: 0, 8: 0, 9: 4, 14: 0}.items()
    assert (found["unknown"], found["untold"], found["any"]) == ([], "", "7")
    assert asked("stacks", target, "--rank", "running")["stacks"][0]["ranks"] == "0"
    assert {one["ranks"] for one in asked("stacks", target, "--rank", "blocked")["stacks"]} >= {"1", "2", "3", "14"}


def test_the_text_names_messages_and_communicators(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    running = start(start_job, tmp_path, RANKS, built(shared, "waits.c"))
    words = [str(command_of_ours("inspector")), "waits", str(running.pid), "--freeze"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    for line in (
        "deadlock: ranks 1-2 wait for one another, 1 -> 2 -> 1",
        "deadlock: ranks 12-13 wait for one another, 12 -> 13 -> 12",
        "3\tMPI_Recv from 0, tag 9, in the communicator of 0,3",
        "14\tMPI_Wait to 0, tag 62",
    ):
        assert line in said.splitlines(), said
