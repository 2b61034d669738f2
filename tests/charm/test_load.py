"""`inspector load` on stock AMPI: by its load-balancing database where the job has a balancer, else by samples.

Each rank measures itself how long it computes, in a variable of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, RANKS, build, running

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),
]
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
PRIVATE double computed;
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}
int main(int count, char **words) {
  int here = 0, me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  computed = 0;
  for (int turn = 0; turn < 50; turn++) {
    double since = now();
    while (now() < since + (me + 1) * 0.004) {}
    computed += now() - since;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("TRUTH %d %p %p %d\n", me, (void *)&computed, (void *)&here, getpid());
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  MPI_Recv(&here, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""


def inspector(*words: object) -> Any:
    command = [sys.executable, "-m", "inspector", *map(str, words), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)


def computed(pid: int) -> dict[int, float]:
    (variable,) = inspector("globals", pid, "computed")["globals"]
    return {int(group["ranks"]): float(group["value"]) for group in variable["groups"]}


@pytest.fixture(scope="module", params=COPIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("load")
    build(made, request.param, "c", source=SOURCE)
    return made


def test_by_the_database(folder: Path) -> None:
    with running(folder, options=("+balancer", "GreedyLB")) as job:
        truth, loads = computed(job.pid), inspector("load", job.pid)
    assert loads["source"] == "counted" and "load-balancing database" in loads["how"]
    busy = {rank["rank"]: rank["busy"] for rank in loads["ranks"]}
    assert sorted(busy) == sorted(truth) == list(range(RANKS))
    for rank in range(1, RANKS):  # rank 0 goes on in sleep
        assert truth[rank] <= busy[rank] < 1.1 * truth[rank] + 0.1, (truth, busy)
    (element,) = loads["elements"]
    assert sum(busy.values()) <= element["elapsed"] and loads["traffic"] is None


def test_without_a_balancer(folder: Path) -> None:
    """Rank 0, which sleeps, runs at every look."""
    with running(folder) as job:
        loads = inspector("load", job.pid)
    assert loads["source"] == "sampled"
    assert [rank["busy"] for rank in loads["ranks"]] == [loads["seconds"], *[0] * (RANKS - 1)]
