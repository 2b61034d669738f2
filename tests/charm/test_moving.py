"""Stock AMPI's ranks while they migrate without pause: at every look each where it is, with a stack that can be.

A rank that is on its way is in no process. Its memory may be mapped in one: AMPI makes it writable before it packs it,
segment by segment from the lowest, and protects it again, in the same order, when it has arrived.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from inspector.job import read_stacks
from inspector.job.job import Job
from inspector.job.read_processes import homes_of, read_together
from inspector.job.reading import Way
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import members_of
from pieglobalsfind.ranks import rankset
from tests.support.busy import why_impossible
from tests.support.busy_values import address_of, value_of
from tests.support.charm.jobs import AMPICC, COPIES, build, launched

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 8
LOOKS = 100
SHARE = 1 << 30  # bytes: ranks' shares of addresses are larger, and the used part of each is smaller
PATIENCE = 120  # seconds until the job has ended
OPTIONS = ("+balancer", "RotateLB", "+setcpuaffinity")  # an SMP build refuses more processes than processors without

# Ranks go round the processes until the file `stop` is there; what each then has must be its own. In four processes
# AMPI loses messages to ranks that migrate, so that ranks wait for ever, also if no look was taken: hence barriers, and
# no MPI_Bcast.
MOVING = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned long before, after;
PRIVATE int number = -1;
static int size, lost;
static unsigned long sum;
static MPI_Info hints;
__attribute__((noinline)) static void step(void) {
  before++;
  after++;
}
__attribute__((noinline)) static void exchange(void) {
  int got = 0;
  step();
  MPI_Sendrecv(&number, 1, MPI_INT, (number + 1) % size, 7, &got, 1, MPI_INT, (number + size - 1) % size, 7,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum += got;
}
__attribute__((noinline)) static void move(int me) {
  MPI_Barrier(MPI_COMM_WORLD);
  AMPI_Migrate(hints);
  MPI_Barrier(MPI_COMM_WORLD);
  lost |= number != me;
}
__attribute__((noinline)) static int stops(void) {
  int is_there = number == 0 && !access("stop", F_OK), stop;
  MPI_Allreduce(&is_there, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return stop;
}
int main(int count, char **words) {
  int me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  number = me;
  printf("TRUTH %d %p %p %d\n", me, (void *)&number, (void *)&me, getpid());
  fflush(stdout);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  do {
    for (int turn = 0; turn < 300; turn++) exchange();
    move(me);
  } while (!stops());
  printf("END %d %d %lu %lu\n", me, lost, before, sum);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return lost;
}
"""
CALLS = {
    "main": ("exchange", "move", "stops"),
    "exchange": ("step",),
    "step": (),
    "move": (),
    "stops": (),
}


@dataclass(frozen=True)
class Look:
    """One process: the job as it was, and its ranks' stacks."""

    pid: int
    job: Job
    stacks: read_stacks.Stacks


@pytest.fixture(scope="module", params=COPIES)
def moving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program whose ranks migrate."""
    folder = tmp_path_factory.mktemp("moving")
    build(folder, request.param, "c", source=MOVING)
    return folder


@pytest.mark.parametrize("processes", [2, 4])
def test_every_rank_at_every_look(moving: Path, processes: int) -> None:
    """Looked at again and again, and once it may end the job's result is the same."""
    (moving / "stop").unlink(missing_ok=True)
    homes: set[tuple[int, int]] = set()
    away = 0
    with launched(moving, RANKS, *OPTIONS, processes=processes) as (launcher, found):
        truth = {rank: int(address, 16) for ranks in found.values() for rank, address in ranks.items()}
        for _ in range(LOOKS):
            looks = list(looked_at(launcher.pid))
            where = homes_of(look.job for look in looks)
            for look in looks:
                check(look, truth)
                homes |= {(look.pid, rank) for rank, job in where.items() if job is look.job}
            for rank in set(range(RANKS)) - set(where):
                check_away(looks, truth[rank])
            away += RANKS - len(where)
        (moving / "stop").touch()
        check_result(launcher)
    print(f"{processes} processes: {away} of {LOOKS * RANKS} were on their way")
    assert len(found) == processes and away < LOOKS * RANKS // 2
    assert {rank for _, rank in homes} == set(range(RANKS))
    assert len({pid for pid, rank in homes if rank == 3}) > 1, "no rank was seen to migrate"


def looked_at(launcher: int) -> Iterator[Look]:
    """Every process, all of one moment."""
    members = members_of(str(launcher))

    def read(job: Job) -> tuple[Job, read_stacks.Stacks]:
        return job, read_stacks.read_one(job, rankset.parse("all"), with_runtime=False)

    for member, value in read_together(members, Way(), lambda job, _: read(job), with_data=True):
        if isinstance(value, RanklensError):
            raise value
        yield Look(member.pid, *value)


def check(look: Look, truth: dict[int, int]) -> None:
    """Stacks and values of each rank in a process must be its own, and possible."""
    ranks = [rank.rank for rank in look.job.table.ranks]
    assert sorted(look.stacks.calls) == ranks and look.stacks.missing == {}
    for calls in look.stacks.calls.values():
        functions = ["main" if call.function == "AMPI_Main" else call.function for call in calls]
        assert why_impossible(functions, "migrate", CALLS) == ""
    for rank in look.job.table.ranks:
        assert address_of(look.job, rank, "number") == truth[rank.rank]
        assert value_of(look.job, rank, "number", size=4) == rank.rank
        assert value_of(look.job, rank, "before") - value_of(look.job, rank, "after") in (0, 1)


def check_away(looks: Sequence[Look], address: int) -> None:
    """A rank that no process shows must be on its way: in none are its headers read-only and its code executable."""
    for look in looks:
        share = [mapping for mapping in look.job.target.maps() if abs(mapping.start - address) < SHARE]
        at_home = [code for before, code in zip(share, share[1:]) if code.executable and not before.writable]
        assert not at_home, (look.pid, share, look.job.table)


def check_result(job: subprocess.Popen[str]) -> None:
    """Every rank has taken as many steps, has received its neighbour's number in each, and has kept its own."""
    assert job.stdout is not None
    said, _ = job.communicate(timeout=PATIENCE)
    ends = {int(rank): tuple(map(int, rest)) for rank, *rest in re.findall(r"^END (\d) (\d) (\d+) (\d+)$", said, re.M)}
    assert job.returncode == 0 and sorted(ends) == list(range(RANKS)), said
    for rank, (lost, steps, total) in ends.items():
        assert lost == 0 and steps == ends[0][1] and total == steps * ((rank - 1) % RANKS)
