"""Which ranks SMPI's ranks wait for, by SMPI's own requests, against what the program says in its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.smpi.test_ranks import asked
from tests.support.gdb.places import make_core
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.jobs import built, needs_smpi, start

pytestmark = needs_smpi
RANKS = 12
ANY, NONE = -1, -2
# By rank: the call, the peer by its rank in MPI_COMM_WORLD, the tag.
CALLS = {
    1: ("MPI_Recv", 2, 41),
    2: ("MPI_Ssend", 1, 43),
    3: ("MPI_Recv", 0, 9),  # 1 of another communicator
    5: ("MPI_Waitany", NONE, NONE),
    7: ("MPI_Recv", ANY, ANY),
    8: ("MPI_Wait", 0, 77),
    9: ("MPI_Probe", 4, 5),
    10: ("MPI_Barrier", 0, NONE),
    11: ("MPI_Sendrecv", 0, 12),
}
BOTH = (("MPI_Waitall", 5, 7), ("MPI_Waitall", 0, 8))  # what rank 4 waits for: both of them


def waiting_of(ranks: dict[int, Any]) -> dict[int, Any]:
    return {rank: one["waiting"] for rank, one in ranks.items() if one["waiting"]}


@pytest.mark.parametrize("how", ["live", "thread", "core"])
def test_every_kind_of_wait(how: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    options = ["--cfg=contexts/factory:thread"] if how == "thread" else []
    running = start(start_job, tmp_path, RANKS, built(shared, "waits.c"), options)
    target = make_core(running.pid, tmp_path) if how == "core" else running.pid
    freeze = [] if how == "core" else ["--freeze"]
    ranks = {one["rank"]: one for one in asked("ranks", target, *freeze)["ranks"]}
    assert (ranks[0]["state"], ranks[6]["state"]) == ("running", "exited")
    told = {rank: (one["call"], one["peer"], one["tag"]) for rank, one in waiting_of(ranks).items()}
    assert told.pop(4) in BOTH
    assert told == CALLS
    found = asked("waits", target)
    if how != "thread":  # each is a kernel thread then, and runs as far as anything tells
        assert found["cycles"] == [[1, 2]]
        (barrier,) = found["collectives"]
        assert (barrier["inside"], barrier["members"]) == ("10", "0-11")
    assert {one["rank"]: one["for"] for one in found["waits"]}.items() >= {1: 2, 2: 1, 3: 0, 8: 0, 9: 4}.items()
    (unknown,) = found["unknown"]
    assert unknown["rank"] == 5 and "it waits for any of " in unknown["reason"]
