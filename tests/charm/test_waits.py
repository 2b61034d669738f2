"""Which rank waits for which under stock AMPI: by AMPI's requests and calls' arguments, against the program and GDB."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from inspector.job.job import job_of, with_waits
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.targets.live import LiveTarget
from tests.support.charm.jobs import AMPICC, COPIES, RANKS, WORKERS, build, wait_until_asleep
from tests.support.debuggers import find_gdb
from tests.support.gdb.session import Session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")

# 0, 1 and 2 wait for one another; 3 waits for 2's broadcast, as its argument says, and nobody else is in that.
RING = r"""
#include <mpi.h>
static PRIVATE int word;
int main(int count, char **words) {
  int me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) MPI_Recv(&word, 1, MPI_INT, 1, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 1) MPI_Recv(&word, 1, MPI_INT, 2, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 2) MPI_Ssend(&word, 1, MPI_INT, 0, 43, MPI_COMM_WORLD);
  if (me == 3) MPI_Bcast(&word, 1, MPI_INT, 2, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""
# The same in Fortran, whose calls have references: 0, 1 and 2 wait for one another, 3 for what it has asked for before.
FORTRAN_RING = """
subroutine wait_for(peer, tag)
  use mpi
  implicit none
  integer, intent(in) :: peer, tag
  integer :: word, ierr, status(MPI_STATUS_SIZE)
  call MPI_Recv(word, 1, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, status, ierr)
end subroutine
subroutine mpi_main
  use mpi
  implicit none
  integer :: ierr, rank, word, request, status(MPI_STATUS_SIZE)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) call wait_for(1, 41)
  if (rank == 1) call wait_for(2, 42)
  if (rank == 2) call wait_for(0, 43)
  if (rank == 3) then
    call MPI_Irecv(word, 1, MPI_INTEGER, 2, 5, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, status, ierr)
  end if
  call MPI_Finalize(ierr)
end subroutine
"""
# 0 waits for two of three messages; 1 for either of two; 2 for rank 0 of another communicator; 3 for what it sends;
# 5 for either of two messages of different communicators.
REQUESTS = r"""
#include <mpi.h>
static int words[3];
int main(int count, char **arguments) {
  int me, index, finished, indices[2];
  MPI_Comm part;
  MPI_Request requests[3];
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_split(MPI_COMM_WORLD, me == 2 || me == 5, -me, &part);
  if (me == 3) MPI_Send(words, 1, MPI_INT, 0, 10, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    for (int i = 0; i < 3; i++)
      MPI_Irecv(&words[i], 1, MPI_INT, (i + 3) % 3 ? i : 3, 10 + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  }
  if (me == 1) {
    MPI_Irecv(&words[0], 1, MPI_INT, 3, 21, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&words[1], 1, MPI_INT, 4, 22, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  }
  if (me == 2) {
    MPI_Irecv(&words[0], 1, MPI_INT, 0, 31, part, &requests[0]);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
  }
  if (me == 3) {
    MPI_Issend(&words[0], 1, MPI_INT, 1, 41, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
  }
  if (me == 4)
    MPI_Sendrecv(&words[0], 1, MPI_INT, 5, 50, &words[1], 1, MPI_INT, 0, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 5) {
    MPI_Irecv(&words[0], 1, MPI_INT, 0, 61, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&words[1], 1, MPI_INT, 1, 62, part, &requests[1]);
    MPI_Waitsome(2, requests, &finished, indices, MPI_STATUSES_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""
# 0 runs once all others wait. 1 and 2 have sent one another what they wait for, 4 and 5 have not; 3 waits for 0, which
# is 1 of another communicator.
BUSY = r"""
#include <mpi.h>
#include <unistd.h>
static int word;
static volatile int here; /* one for all ranks: the program's globals are not privatized */
int main(int count, char **words) {
  int me;
  MPI_Comm part;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_split(MPI_COMM_WORLD, me == 3 || me == 0, -me, &part);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0 && here < 5) AMPI_Yield();
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  if (me == 1) MPI_Send(&word, 1, MPI_INT, 2, 7, MPI_COMM_WORLD);
  if (me == 2) MPI_Send(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  if (me != 0) here++;
  if (me == 1) MPI_Recv(&word, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 2) MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 3) MPI_Recv(&word, 1, MPI_INT, 1, 9, part, MPI_STATUS_IGNORE);
  if (me == 4) MPI_Recv(&word, 1, MPI_INT, 5, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 5) MPI_Recv(&word, 1, MPI_INT, 4, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
# 1 and 2 send one another messages for ever; at many moments both wait. 0 and 3 wait for one another.
EXCHANGE = r"""
#include <mpi.h>
static int word;
static void take(int from, int tag) {
  MPI_Recv(&word, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int count, char **words) {
  int me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0 || me == 3) take(3 - me, 41);
  if (me == 2) take(1, 7);
  for (;;) {
    MPI_Send(&word, 1, MPI_INT, 3 - me, 7, MPI_COMM_WORLD);
    take(3 - me, 7);
  }
}
"""
# Whoever leaves the barrier first runs from then on; the others' turns have not come.
LEFT = r"""
#include <mpi.h>
#include <unistd.h>
static volatile int left; /* one for all ranks: the program's globals are not privatized */
int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Barrier(MPI_COMM_WORLD);
  while (left++ == 0)
    for (;;) sleep(300); /* signals of the runtime interrupt it */
  MPI_Finalize();
  return 0;
}
"""
# Each rank exchanges messages with its near neighbours for ever, now in MPI_COMM_WORLD, now among the ranks of its
# parity, which are numbered the other way round. A message's tag says which of these it is, and how far away the other
# is. Each turn has another number of requests, sometimes more than AMPI keeps room for in a rank.
NEIGHBOURS = r"""
#include <mpi.h>
#include <stdio.h>
enum { MOST = 45 };
static int words[2 * MOST];
int main(int count, char **arguments) {
  int me, size;
  MPI_Comm part;
  MPI_Request requests[2 * MOST];
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &part);
  if (me == 0) printf("begins\n"), fflush(stdout);
  for (int turn = 0;; turn++) {
    MPI_Comm comm = turn % 2 ? part : MPI_COMM_WORLD;
    int messages = 1 + turn * 7 % MOST;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < messages; i++) {
      int far = 1 + i % 3, tag = 10 * (turn % 2) + far;
      MPI_Irecv(&words[i], 1, MPI_INT, (me + far) % size, tag, comm, &requests[i]);
      MPI_Isend(&words[MOST + i], 1, MPI_INT, (me + 3 * size - far) % size, tag, comm, &requests[messages + i]);
    }
    MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
  }
}
"""
LOOKS = 100
# With and without the hook module.
DEADLOCKS = [(method, with_hook) for method in COPIES for with_hook in (False, True)] + [("none", False)]


def asked(*words: object) -> Any:
    command = [sys.executable, "-m", "inspector", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@contextmanager
def started(folder: Path, ranks: int, blocked: set[int]) -> Iterator[int]:
    """The program, once those ranks wait; ended afterwards."""
    with subprocess.Popen(["./prog", f"+vp{ranks}", *WORKERS], cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: blocked <= waiting(process.pid), "the ranks never came to wait")
            yield process.pid
        finally:
            process.kill()


def waiting(pid: int) -> set[int]:
    """The ranks that wait in other calls than the barrier that comes before."""
    command = [sys.executable, "-m", "inspector", "ranks", str(pid), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    ranks = json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
    return {rank["rank"] for rank in ranks if rank["state"] == "blocked" and rank["waiting"]["call"] != "MPI_Barrier"}


def runtime_tells(folder: Path) -> bool:
    """Whether GDB knows MPI_Recv's parameters: the runtime has debug information."""
    command = [str(find_gdb()), "-nx", "-q", "-batch", "-ex", "whatis MPI_Recv", str(folder / "prog")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    return "(void *, int" in said.stdout


@pytest.mark.parametrize(("method", "with_hook"), DEADLOCKS)
def test_a_deadlock(method: str, with_hook: bool, gdb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AMPI's requests tell it in all builds and under all methods."""
    monkeypatch.setenv("AMPI_BUILD_FLAGS", "-O2")
    build(tmp_path, method, "c", with_hook, RING)
    tells = runtime_tells(tmp_path)
    with started(tmp_path, RANKS, set(range(RANKS))) as pid:
        found = asked("waits", pid)
        calls = [one["waiting"] for one in asked("ranks", pid)["ranks"]]
        script = f"""
        found = []
        for rank in range({RANKS}):
            ask(f"rank {{rank}}")
            found.append(ask("frame function MPI_" + ["Recv", "Recv", "Ssend", "Bcast"][rank]) and ask("info args"))
        tell("arguments", found)
        """
        arguments = Session(gdb, tmp_path).attach(script, pid)["arguments"] if tells else []
    assert [call["call"] for call in calls] == ["MPI_Recv", "MPI_Recv", "MPI_Ssend", "MPI_Bcast"]
    assert {one["rank"]: one["for"] for one in found["waits"]} == {0: 1, 1: 2, 2: 0, 3: 2}
    assert (found["cycles"], found["unsure"], found["unknown"]) == ([[0, 1, 2]], [], [])
    assert [(call["peer"], call["tag"], call["communicator"]) for call in calls[:3]] == [
        (1, 41, 1_000_000),
        (2, -1, 1_000_000),
        (0, 43, 1_000_000),
    ]
    (broadcast,) = found["collectives"]
    assert (broadcast["members"], broadcast["inside"], broadcast["needed"]) == ("0-3", "3", "2")
    assert found["standstill"] == "0-3"
    for rank, text in enumerate(map(str, arguments)):
        told = dict(re.findall(r"^(\w+) = (-?\d+|<optimized out>)$", text, re.MULTILINE))
        ours = {"src": calls[rank]["peer"], "dest": calls[rank]["peer"], "root": 2, "comm": 1_000_000}
        for name in ours.keys() & told.keys():
            assert told[name] in (str(ours[name]), "<optimized out>"), text


def test_a_deadlock_in_fortran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fortran's calls have references; what rank 3 waits for it has asked for before."""
    monkeypatch.setenv("AMPI_BUILD_FLAGS", "-O2")
    build(tmp_path, "fs", "f90", source=FORTRAN_RING)
    with started(tmp_path, RANKS, set(range(RANKS))) as pid:
        found = asked("waits", pid)
        calls = [one["waiting"] for one in asked("ranks", pid)["ranks"]]
    assert {one["rank"]: one["for"] for one in found["waits"]} == {0: 1, 1: 2, 2: 0, 3: 2}
    assert (found["cycles"], found["unknown"]) == ([[0, 1, 2]], [])
    assert [(call["call"], call["peer"], call["tag"]) for call in calls] == [
        ("MPI_Recv", 1, 41),
        ("MPI_Recv", 2, 42),
        ("MPI_Recv", 0, 43),
        ("MPI_Wait", 2, 5),
    ]


def test_requests(tmp_path: Path) -> None:
    """What calls wait for that have several requests, or one of another communicator."""
    build(tmp_path, "pie", "c", source=REQUESTS)
    with started(tmp_path, 6, set(range(6))) as pid:
        waits = asked("waits", pid)
        calls = [rank["waiting"] for rank in asked("ranks", pid)["ranks"]]
    said = [(call["call"], call["peer"], call["tag"], call["communicator"] == 1_000_000) for call in calls]
    assert said == [
        ("MPI_Waitall", 1, 11, True),
        ("MPI_Waitany", 3, 21, True),
        ("MPI_Wait", 5, 31, False),
        ("MPI_Wait", 1, 41, True),
        ("MPI_Sendrecv", 0, 51, True),
        ("MPI_Waitsome", 0, 61, True),
    ]
    others = [[(one["peer"], one["tag"]) for one in call["others"]] for call in calls]
    assert others == [[(2, 12)], [(4, 22)], [], [], [], [(2, 62)]]
    assert [call["needs_one"] for call in calls] == [False, True, False, False, False, True]
    assert waits["unknown"] == []


def test_what_only_looks_like_a_deadlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a rank runs, no reader knows what others have been sent."""
    monkeypatch.setenv("AMPI_BUILD_FLAGS", "-O2")
    build(tmp_path, "none", "c", source=BUSY)
    with started(tmp_path, 6, {3, 4, 5}) as pid:
        wait_until_asleep(pid)
        found = asked("waits", pid)
    assert (found["cycles"], found["standstill"], found["untold"]) == ([], "", "")
    assert {"rank": 3, "for": 0} in [{"rank": one["rank"], "for": one["for"]} for one in found["waits"]]
    (reason,) = [one["reason"] for one in found["unsure"] if one["ranks"] == [4, 5]]
    assert "rank 0 runs" in reason


def test_a_barrier_that_is_over_lacks_nobody(tmp_path: Path) -> None:
    """Who has left it is not told to be awaited by those who have only not had their turn."""
    build(tmp_path, "none", "c", source=LEFT)
    with started(tmp_path, RANKS, set()) as pid:
        wait_until_asleep(pid)
        ranks = {one["rank"]: one["state"] for one in asked("ranks", pid)["ranks"]}
        found = asked("waits", pid)
    (first,) = [rank for rank, state in ranks.items() if state == "running"]
    assert sorted(ranks.values()) == ["ready"] * 3 + ["running"]
    (barrier,) = found["collectives"]
    assert (barrier["lacking"], barrier["needed"]) == (str(first), "")
    assert (found["waits"], found["cycles"], found["standstill"]) == ([], [], "")


def test_ranks_that_exchange_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that the runtime has not handed out yet is not seen: none of them is ever told to be in a deadlock."""
    monkeypatch.setenv("AMPI_BUILD_FLAGS", "-O2")
    build(tmp_path, "none", "c", source=EXCHANGE)
    with started(tmp_path, RANKS, {0, 3}) as pid:
        found = [asked("waits", pid) for _ in range(10)]
    assert [one["cycles"] for one in found] == [[]] * 10
    assert not any(one["standstill"] for one in found)


@pytest.mark.parametrize("ranks", [2, 16])
def test_peers_of_ranks_that_never_wait_long(ranks: int, tmp_path: Path) -> None:
    """At each look all have a peer, and none has a wrong one: a rank's requests are others at each moment."""
    build(tmp_path, "none", "c", source=NEIGHBOURS)
    command = ["./prog", f"+vp{ranks}", *WORKERS]
    waits = 0
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and any(line.startswith("begins") for line in process.stdout)
            live = LiveTarget(process.pid)
            for _ in range(LOOKS):
                plan = plan_for(live, False, with_requests=True)
                job = at_one_moment([plan], False, lambda paused: with_waits(job_of(paused[0])))
                for rank in job.table.ranks:
                    if rank.waiting is not None:
                        first = rank.waiting
                        assert (first.unknown, first.in_world) == ("", True), f"{rank.rank}, {rank.state}: {first}"
                        for tag, peer in [(first.tag, first.peer), *((each.tag, each.peer) for each in first.others)]:
                            assert peer == neighbour(rank.rank, tag, ranks)
                            waits += 1
        finally:
            process.kill()
    assert waits > LOOKS


def neighbour(rank: int, tag: int, ranks: int) -> int:
    """Of which rank a message of NEIGHBOURS is, by its tag."""
    if tag < 10:
        return (rank + tag) % ranks
    return (rank - 2 * (tag - 10)) % ranks
