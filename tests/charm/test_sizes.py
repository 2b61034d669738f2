"""Stock AMPI's ranks in large heaps, in large numbers, and while they migrate: each is found, with the right number."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import threads
from pieglobalsfind.decoders.ampi.runtime_variables import find_loader
from pieglobalsfind.model import Absent, Rank, RankTable, Rebase, TlsBlock
from pieglobalsfind.ranks.rankset import Span, parse
from pieglobalsfind.targets.live import LiveTarget
from tests.charm.test_pause import RANKS, check_looks, check_result
from tests.support.busy import SOURCE
from tests.support.charm.jobs import AMPICC, COPIES, build, running
from tests.support.running import BIN

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
MANY = 1000

# malloc leads to libc's heap, new to isomalloc's; pages that are allocated and never touched take no memory.
ALLOCATE = r"""
static long megabytes(const char *name) { return getenv(name) ? atol(getenv(name)) : 0; }
static void allocate(int ranks) {
  for (long left = megabytes("LIBC_MB") * 10 / ranks; left > 0; left--) *(char *)malloc(100000) = 1;
  for (long left = megabytes("ISO_MB") * 10 / ranks; left > 0; left--) *new char[100000] = 1;
}
"""
LARGE = (
    r"""
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
PRIVATE int g_rank = -1;
"""
    + ALLOCATE
    + r"""
int main(int count, char **words) {
  int me, all;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  g_rank = me;
  allocate(all);
  printf("TRUTH %d %p %p\n", me, (void *)&g_rank, (void *)&me);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  MPI_Recv(&me, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
)
BUSY = SOURCE.replace("int main(", ALLOCATE + "int main(").replace("  turns =", "  allocate(size);\n  turns =")
HEAPS = {"libc": {"LIBC_MB": "2000"}, "isomalloc": {"ISO_MB": "2000"}}


@pytest.fixture(scope="module", params=COPIES)
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program that allocates as much as the environment says."""
    folder = tmp_path_factory.mktemp("large")
    build(folder, request.param, "cpp", source=LARGE)
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
    own = {rank.rank: list(spans_of(rank)) for rank in table.ranks}
    for rank, address in truth.items():
        assert any(start <= int(address, 16) < start + size for start, size in own[rank]), (rank, address)


def spans_of(rank: Rank) -> Iterator[tuple[int, int]]:
    """A rank's copies and blocks of thread-local variables: address and size of each."""
    for placement in rank.placements:
        if isinstance(placement, Rebase):
            yield placement.copy, placement.size
        elif isinstance(placement, TlsBlock):
            yield placement.address, placement.size


@pytest.mark.parametrize("heap", HEAPS)
def test_heaps_of_2_gb(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heap: str) -> None:
    for name, value in HEAPS[heap].items():
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
            patch.setattr(threads, "placed_elements", lambda *_: [])
            by_search = threads.find_threads(target, target.maps(), loader)
    assert by_tables and by_search and len(by_tables) == len(up.truth)
    here = {rank: thread for rank, thread in by_tables.items() if not isinstance(thread, Absent)}
    places = {rank: replace(thread, element=None) for rank, thread in here.items()}
    assert places == by_search, "the tables alone tell the processing element"
    assert in_main(live) == in_main(kept) == set(up.truth)


def test_a_thousand_ranks(large: Path) -> None:
    with running(large, MANY) as up:
        table = decode(LiveTarget(up.pid))
        stacks = asked("stacks", up.pid)
    assert [rank.rank for rank in table.ranks] == list(range(MANY))
    check_places(table, {rank: truth.global_address for rank, truth in up.truth.items()})
    assert in_main(stacks) == set(range(MANY))


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a program whose ranks allocate, and then exchange messages without pause."""
    folder = tmp_path_factory.mktemp("busy")
    build(folder, "pie", "cpp", source=BUSY)
    return folder


@pytest.mark.parametrize("heap", HEAPS)
def test_looks_at_busy_ranks_with_heaps_of_2_gb(busy: Path, monkeypatch: pytest.MonkeyPatch, heap: str) -> None:
    for name, value in HEAPS[heap].items():
        monkeypatch.setenv(name, value)
    check_looks(busy, "exchange", RANKS)
    check_result(busy, RANKS, turns=20000)


@pytest.mark.timeout(1200)
def test_looks_at_a_thousand_busy_ranks(busy: Path) -> None:
    check_looks(busy, "exchange", MANY)
    check_result(busy, MANY, turns=500)
