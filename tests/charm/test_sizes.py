"""Stock AMPI's ranks in large heaps, in large numbers, and while they migrate: each is found, with the right number."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import threads
from pieglobalsfind.decoders.ampi.loader import find_loader
from pieglobalsfind.decoders.ampi.search import LAYOUT
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.x86_64 import X86_64
from pieglobalsfind.model import Rank, RankTable, Rebase, Region
from pieglobalsfind.ranks.rankset import Span, parse
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from tests.support.charm.jobs import AMPICC, WORKERS, build, launched, running
from tests.support.running import BIN

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
MANY = 1000
LOOKS = 100

# malloc leads to libc's heap, new to isomalloc's; pages that are allocated and never touched take no memory.
LARGE = r"""
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int g_rank = -1;
static long megabytes(const char *name) { return getenv(name) ? atol(getenv(name)) : 0; }
int main(int count, char **words) {
  int me, all;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  g_rank = me;
  for (long left = megabytes("LIBC_MB") * 10 / all; left > 0; left--) *(char *)malloc(100000) = 1;
  for (long left = megabytes("ISO_MB") * 10 / all; left > 0; left--) *new char[100000] = 1;
  printf("TRUTH %d %p %p\n", me, (void *)&g_rank, (void *)&me);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  MPI_Recv(&me, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
# Ranks go round the processes until the file `stop` is there; what each then has must be its own.
MOVING = r"""
#include <mpi.h>
#include <cstdio>
#include <unistd.h>
int g_rank = -1;
int main(int count, char **words) {
  int me, stop = 0, lost = 0, turns = 0;
  MPI_Info hints;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  g_rank = me;
  printf("TRUTH %d %p %p %d\n", me, (void *)&g_rank, (void *)&me, getpid());
  fflush(stdout);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  for (; !stop; turns++) {
    AMPI_Migrate(hints);
    lost |= g_rank != me;
    if (me == 0) stop = !access("stop", F_OK);
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  printf("END %d %d %d\n", me, g_rank, lost);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return lost;
}
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program that allocates as much as the environment says."""
    folder = tmp_path_factory.mktemp("large")
    build(folder, "pie", "cpp", source=LARGE)
    return folder


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program whose ranks migrate."""
    folder = tmp_path_factory.mktemp("moving")
    build(folder, "pie", "cpp", source=MOVING)
    return folder


def asked(*words: object) -> Any:
    """What the inspector says in JSON."""
    command = [str(BIN / "inspector"), *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_main(stacks: Any) -> set[int]:
    """The ranks whose stacks go down to the program's main function."""
    return {
        rank
        for one in stacks["stacks"]
        for span in parse(one["ranks"])
        if isinstance(span, Span) and "AMPI_Main" in [call["function"] for call in one["calls"]]
        for rank in range(span.first, span.last + 1)
    }


def check_places(table: RankTable, truth: dict[int, str]) -> None:
    """Each rank's number is that of the rank which says that its global lies there."""
    copies = {
        rank.rank: [placement for placement in rank.placements if isinstance(placement, Rebase)] for rank in table.ranks
    }
    for rank, address in truth.items():
        assert any(rebase.copy <= int(address, 16) < rebase.copy + rebase.size for rebase in copies[rank]), (
            rank,
            address,
        )


@pytest.mark.skipif(bool(WORKERS), reason="SMP builds allocate threads in arenas of their own, which test_methods runs")
@pytest.mark.parametrize("how", [{"LIBC_MB": "2000"}, {"ISO_MB": "2000"}])
def test_heaps_of_2_gb(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, str]) -> None:
    for name, value in how.items():
        monkeypatch.setenv(name, value)
    with running(large) as up:
        sizes = [mapping.end - mapping.start for mapping in LiveTarget(up.pid).maps()]
        assert max(sizes) > 400_000_000, "the heap is not large"
        target = LiveTarget(up.pid)
        table = decode(target)
        check_places(table, {rank: truth.global_address for rank, truth in up.truth.items()})
        live = asked("stacks", up.pid)
        file = tmp_path / "snapshot"
        subprocess.run([str(BIN / "inspector"), "snapshot", str(up.pid), "-o", str(file)], check=True, timeout=300)
        kept = asked("stacks", file)
        loader = find_loader(target, target.maps())
        assert loader is not None
        by_tables = threads.find_threads(target, target.maps(), loader)
        with monkeypatch.context() as patch:
            patch.setattr(threads, "words_of_elements", lambda *_: [])
            by_search = threads.find_threads(target, target.maps(), loader)
    assert by_tables == by_search and by_tables is not None and len(by_tables) == len(up.truth)
    assert in_main(live) == in_main(kept) == set(up.truth)


def test_a_thousand_ranks(large: Path) -> None:
    with running(large, MANY) as up:
        table = decode(LiveTarget(up.pid))
        stacks = asked("stacks", up.pid)
    assert [rank.rank for rank in table.ranks] == list(range(MANY))
    check_places(table, {rank: truth.global_address for rank, truth in up.truth.items()})
    assert in_main(stacks) == set(range(MANY))


def test_ranks_that_migrate_all_the_time(moving: Path) -> None:
    """Looked at again and again, and once it may end the job's result is the same."""
    (moving / "stop").unlink(missing_ok=True)
    seen: set[tuple[int, int]] = set()
    with launched(moving, 8, "+balancer", "RotateLB") as (job, found):
        truth = {rank: address for one in found.values() for rank, address in one.items()}
        for look in range(LOOKS):
            pid = sorted(found)[look % len(found)]
            for rank in looked_at(pid, truth):
                seen.add((pid, rank))
        (moving / "stop").touch()
        assert job.stdout is not None
        said = job.stdout.read()
        job.wait(timeout=60)
    ends = re.findall(r"^END (\d) (\d) (\d)$", said, re.MULTILINE)
    assert job.returncode == 0 and sorted(ends) == [(str(rank), str(rank), "0") for rank in range(8)], said
    assert len(found) == 2 and {rank for _, rank in seen} == set(range(8))
    assert len({pid for pid, rank in seen if rank == 3}) > 1, "nobody was seen to migrate"


def looked_at(pid: int, truth: dict[int, str]) -> Iterator[int]:
    """The ranks that a process has at one moment; whatever is said of them must be possible."""
    saved_pc = next(register_rule.offset for register_rule in LAYOUT if register_rule.dwarf_register == X86_64.pc)
    with FrozenTarget(pid) as target:
        try:
            table = decode(target)
        except RanklensError:  # all of its ranks are elsewhere
            return
        loader = find_loader(target, target.maps())
        assert loader is not None
        for rank in table.ranks:
            if isinstance(rank.context, int):
                word = target.read(rank.context + saved_pc, 8)
                assert loader.has_code(int.from_bytes(word, "little")), rank
                check_share(rank)
                yield rank.rank
    check_places(table, {rank.rank: truth[rank.rank] for rank in table.ranks if isinstance(rank.context, int)})


def check_share(rank: Rank) -> None:
    """A rank's stack and saved context lie in the addresses that are its own."""
    assert isinstance(rank.context, int) and isinstance(rank.range, Region) and isinstance(rank.stack, Region)
    assert rank.context in rank.stack and rank.stack.start == rank.range.start
