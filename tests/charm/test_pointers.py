"""The pointer audit where ranks' `malloc` is libc's, as in C under stock AMPI's `-pieglobals`: one heap for all."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.charm.jobs import AMPICC, BOTH, COPIES, RANKS, WORKERS, build, wait_until_asleep
from tests.support.running import built

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")

# Each PLANT is a word of libc's heap that names the original: its rank, its address, and how the program calls it.
# `raw` and `lost` are such words that no typed pointer leads to; what was freed and what is not pointer is not told.
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct node { int kind; double weight; long *where; struct node *next; };
struct __attribute__((packed)) packet { char kind; long *where; };
static long anchor[4];
struct packet escaped = {'e', &anchor[2]}; /* misaligned: no scan of the runtime's sees it */
struct node *shared;
struct packet *held;
struct node **table;
char *raw;
PRIVATE int rank;
__attribute__((constructor)) static void make(void) {
  shared = calloc(1, sizeof *shared);
  shared->where = &anchor[1];
}
static void plant(const char *name, void *word) { printf("PLANT %d %p %s\n", rank, word, name); }
int main(int count, char **words) {
  int here;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long *original = escaped.where;
  held = malloc(3 * sizeof *held);
  for (int i = 0; i < 3; i++) held[i] = escaped;
  table = calloc(5, sizeof *table);
  table[3] = calloc(1, sizeof **table);
  table[3]->where = original;
  struct node *local = calloc(2, sizeof *local);
  local[1].where = original;
  local[1].weight = 2;
  long **large = calloc(1, 1 << 20);
  large[1000] = original;
  struct node *freed = calloc(1000, sizeof *freed);
  freed[7].where = original;
  freed[8].kind = here = 5;
  free(freed);
  freed = NULL; /* else it leads to what is allocated there next, as another type */
  long *numbers = calloc(5, sizeof *numbers);
  numbers[2] = (long)original;
  raw = calloc(1, 64);
  *(long **)raw = original;
  plant("shared->where", &shared->where);
  plant("held->where", &held[0].where);
  plant("held[1].where", &held[1].where);
  plant("held[2].where", &held[2].where);
  plant("table[3]->where", &table[3]->where);
  plant("local[1].where", &local[1].where);
  plant("large[1000]", &large[1000]);
  printf("TRUTH %d %p %p\n", rank, (void *)&rank, (void *)&here);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (rank == 0) sleep(300);
  MPI_Recv(&here, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return (int)(*local[1].where + *large[1000] + numbers[2]);
}
"""


class Planted:
    """A job that has said where its plants are: (rank, address, name)."""

    def __init__(self, method: str, pid: int, folder: Path, lines: list[str]) -> None:
        self.method = method
        self.pid = pid
        self.folder = folder
        found = [line.split() for line in lines if line.startswith("PLANT ")]
        self.plants = {(int(one[1]), int(one[2], 16), one[3]) for one in found}


@pytest.fixture(scope="module", params=COPIES)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("pointers")
    build(folder, request.param, "c", source=SOURCE)
    command = ["./prog", f"+vp{RANKS}", *WORKERS]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines: list[str] = []
            assert process.stdout is not None
            while sum(line.startswith("TRUTH") for line in lines) < RANKS:
                lines.append(process.stdout.readline())
                assert lines[-1], "the program has ended"
            wait_until_asleep(process.pid)
            yield Planted(request.param, process.pid, folder, lines)
        finally:
            process.kill()


def inspected(*words: object) -> tuple[dict[str, Any], str]:
    command = [str(built("inspector")), "pointers", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def without_envelope(answer: dict[str, Any]) -> dict[str, Any]:
    """What is found, without where and when it was read."""
    return {key: value for key, value in answer.items() if key not in ("target", "taken", "how")}


def told(answer: dict[str, Any]) -> set[tuple[int, int, str]]:
    """What is told of libc's heap."""
    found = [one for one in answer["findings"] if one["object"] == "libc's heap"]
    assert {one["verdict"] for one in found} == {"stale"}, [one for one in found if one["verdict"] != "stale"]
    return {(one["rank"], int(one["address"], 16), one["symbol"]) for one in found}


def test_none_missed_and_none_invented(job: Planted) -> None:
    """Of the process, its core file and its snapshot."""
    assert len(job.plants) == 7 * RANKS
    live, said = inspected(job.pid)
    assert told(live) == job.plants
    left = re.search(r"(\d+) words there name an original in blocks to which no typed pointer of a rank leads", said)
    assert left is not None and int(left[1]) >= RANKS, said  # `raw` of each
    subprocess.run(["gcore", "-o", "core", str(job.pid)], cwd=job.folder, check=True, capture_output=True, timeout=120)
    snapshot = job.folder / "snapshot"
    subprocess.run([str(built("inspector")), "snapshot", str(job.pid), "-o", str(snapshot)], check=True, timeout=120)
    for target in (job.folder / f"core.{job.pid}", snapshot):
        answer, as_text = inspected(target)
        assert (without_envelope(answer), as_text) == (without_envelope(live), said)


def test_what_is_right_for_a_block_that_all_share(job: Planted) -> None:
    """Nothing: no value is right for all of them. Of a rank's own block it is the place in its copy."""
    answer, _ = inspected(job.pid)
    right = {(one["rank"], one["symbol"]): one["right"] for one in answer["findings"]}
    for rank in range(RANKS):
        assert right[rank, "shared->where"] is None
        assert right[rank, "held->where"] == right[rank, "escaped.where"] == right[rank, "large[1000]"]


def test_a_snapshot_of_what_ranks_are_keeps_what_tells_of_them(job: Planted) -> None:
    def ranks(target: object) -> Any:
        command = [str(built("inspector")), "ranks", str(target), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["ranks"]

    live = ranks(job.pid)
    assert {one["tier"] for one in live} == {"runtime"}
    for memory in ("none", "ranks"):
        file = job.folder / memory
        command = [str(built("inspector")), "snapshot", str(job.pid), "-o", str(file), "--memory", memory]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        kept = ranks(file)
        assert [(one["rank"], one["state"], one["waiting"]) for one in kept] == [
            (one["rank"], one["state"], one["waiting"]) for one in live
        ]
        assert all(one["tier"] == "runtime" for one in kept)


def test_a_jobs_program_is_known_and_judged(job: Planted) -> None:
    """AMPI calls another function than main: the program is told all the same."""
    audit = subprocess.run([str(built("inspector")), "audit", str(job.pid), "--json"], capture_output=True, timeout=60)
    found = json.loads(audit.stdout)
    assert found["program"] == str(job.folder / "prog.user.so") and found["undescribed"] == []
    assert sum(one["count"] for one in found["variables"]) >= 7  # of a debug build AMPI's own in it are described, too
    assert [one["method"] for one in found["methods"]] == ["pie"]
    report = subprocess.run(
        [str(built("inspector")), "report", str(job.pid), "--json"], capture_output=True, timeout=60
    )
    expected = {"misaligned-pointer"} | ({"thread-local-under-pieglobals"} if job.method == BOTH else set())
    assert {one["id"] for one in json.loads(report.stdout)["diagnoses"]} == expected
