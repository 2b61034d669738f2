"""Threads of stock AMPI in heaps of any size: by Charm++'s own tables, or by a search in the order of allocation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import decode as ampi
from pieglobalsfind.decoders.ampi.threads import NO_THREAD
from pieglobalsfind.model import Absent, RankTable, Region
from tests.support.fabricate.ampi import HEAP, MEGABYTE, RANKS, Job
from tests.support.fabricate.memory import Mapped, MemoryTarget, Shaking

GIGABYTE = 1 << 30
PIECE = 1 << 22


def _contexts(table: RankTable) -> dict[int, Any]:
    return {rank.rank: rank.context for rank in table.ranks}


def _read_of_heap(target: MemoryTarget, size: int) -> int:
    """Bytes of the heap that were read."""
    return sum(length for start, length in target.reads if HEAP <= start < HEAP + size)


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("place", [0, 3 * GIGABYTE, 64 * GIGABYTE - MEGABYTE])
@pytest.mark.parametrize("method", ["pie", "tls", "none"])
def test_charm_s_tables_lead_to_threads_anywhere_in_a_heap(
    tmp_path: Path, method: str, place: int, stripped: bool
) -> None:
    size = 64 * GIGABYTE
    job = Job(method, running=2, has_tables=True, heap_size=size, heap_at=place, stripped=stripped)
    target = job.target(tmp_path)
    table = decode(target)
    assert table.warnings == ()
    assert [rank.stack for rank in table.ranks] == [Region(job.begin(rank), MEGABYTE) for rank in range(RANKS)]
    assert [rank.thread for rank in table.ranks] == [job.thread(rank) for rank in range(RANKS)]
    assert _read_of_heap(target, size) < MEGABYTE


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("place", [0, 9 * GIGABYTE + 8 * 4096, 64 * GIGABYTE - MEGABYTE])
def test_a_search_skips_pages_that_were_never_touched(tmp_path: Path, place: int, stripped: bool) -> None:
    size = 64 * GIGABYTE
    job = Job("none", heap_size=size, heap_at=place, stripped=stripped)
    target = job.target(tmp_path)
    table = decode(target)
    assert [rank.thread for rank in table.ranks] == [job.thread(rank) for rank in range(RANKS)]
    assert _read_of_heap(target, size) < 4 * MEGABYTE


def test_a_search_ends_when_every_rank_is_found(tmp_path: Path) -> None:
    """The target does not know which pages were touched."""
    size = 4 * GIGABYTE
    sparse = Job("none", heap_size=size).target(tmp_path)
    mapped = Mapped(0x7FFF00000000, size)
    target = _Opening([*sparse.mapped, mapped])
    assert [rank.rank for rank in decode(target).ranks if isinstance(rank.stack, Region)] == list(range(RANKS))
    assert sum(length for _, length in target.reads) < 4 * PIECE


class _Opening(MemoryTarget):
    def open_path(self, path: str) -> str:
        return path


@pytest.mark.parametrize("edge", [8, 16, 24, 32, 40, 0xA0, 0x400])
def test_a_thread_across_the_edge_of_a_piece_is_one_thread(tmp_path: Path, edge: int) -> None:
    """The context of rank 1, or what is around it, lies on both sides of where one read ends and the next begins."""
    job = Job("none", heap_size=64 * MEGABYTE)
    job.heap_at = 4 * PIECE - (job.thread(1) - job.heap + job.before + edge)
    target = _Opening([*job.target(tmp_path).mapped])
    table = decode(target)
    assert [rank.thread for rank in table.ranks] == [job.thread(rank) for rank in range(RANKS)]


def test_an_element_that_has_left_has_no_thread_though_its_stack_is_mapped(tmp_path: Path) -> None:
    """The process that a rank leaves keeps its memory until the other one has fetched it; what is freed is stale."""
    job = Job("pie", running=0, has_tables=True, moved=(1,), stale=(1,))
    contexts = _contexts(decode(job.target(tmp_path)))
    assert contexts[1] == NO_THREAD
    assert [contexts[rank] for rank in (2, 3)] == [job.context(rank) for rank in (2, 3)]


def test_a_freed_thread_that_an_element_points_to_is_not_believed(tmp_path: Path) -> None:
    table = decode(Job("pie", has_tables=True, stale=(1, 3)).target(tmp_path))
    assert [rank.rank for rank in table.ranks if isinstance(rank.stack, Region)] == [0, 2]


def test_tables_of_another_form_leave_the_search(tmp_path: Path) -> None:
    """Threads that do not validate are none, whatever leads there."""
    table = decode(Job("pie", has_tables=True, no_tokens=True).target(tmp_path))
    assert table.warnings == (ampi.NOT_THREADS,)
    assert all(isinstance(rank.stack, Absent) for rank in table.ranks)


@pytest.mark.parametrize("seed", range(20))
def test_elements_that_change_while_they_are_read_give_no_wrong_thread(tmp_path: Path, seed: int) -> None:
    """Each read may be of another moment: before a rank has left, and after its element and its thread are gone."""
    before = Job("none", has_tables=True).target(tmp_path)
    after = Job("none", has_tables=True, moved=(2,), stale=(2,), running=1).target(tmp_path)
    job = Job("none")
    target = Shaking([before, after], seed)
    for rank in decode(target).ranks:
        assert rank.stack in (Region(job.begin(rank.rank), MEGABYTE), NO_THREAD)
        assert isinstance(rank.context, Absent) or rank.context == job.context(rank.rank)
