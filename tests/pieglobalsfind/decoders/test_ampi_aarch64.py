"""Stock AMPI on AArch64, on fabricated jobs: threads are ucontexts there, as Charm++'s sources have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.machine.aarch64 import AARCH64, LR, PC, SP
from pieglobalsfind.model import READY, RUNNING, Absent, Region
from pieglobalsfind.session.process_view import ProcessView
from tests.support.fabricate.ampi import MEGABYTE, RANKS, TEXT, USED, Job

METHODS = ("pie", "pip", "fs", "none")  # Charm++ has no TLSglobals there
SIGNED = 0x2E << 48


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("has_tables", [False, True])
def test_the_whole_truth_of_a_sound_job(tmp_path: Path, method: str, has_tables: bool) -> None:
    job = Job(method, running=2, is_aarch64=True, has_tables=has_tables)
    table = decode(job.target(tmp_path))
    assert (table.runtime, table.method, table.warnings, table.rank_count) == ("AMPI", method, (), RANKS)
    assert table.processor is AARCH64
    for rank in table.ranks:
        assert rank.stack == Region(job.begin(rank.rank), MEGABYTE)
        assert rank.state == (RUNNING if rank.rank == 2 else READY)
        assert isinstance(rank.heap, Region)
        assert rank.heap.end == job.begin(rank.rank) + MEGABYTE + USED
        assert rank.context_at == 0
        if rank.rank != 2:
            assert rank.context == job.context(rank.rank)
    assert isinstance(table.ranks[2].context, Absent)


def test_registers_of_swapcontext(tmp_path: Path) -> None:
    """It saves its own end as pc; the thread continues where it was called."""
    job = Job("pip", is_aarch64=True)
    target = job.target(tmp_path)
    view = ProcessView(target, decode(target))
    for number in range(1, RANKS):
        found = view.contexts.saved(view.rank(number))
        assert (found[SP], found[PC], found[LR]) == (job.pointer(number), TEXT + 0x20, TEXT + 0x20)
        assert [found[one] for one in range(2, 30)] == [1000 * number + one for one in range(2, 30)]


@pytest.mark.parametrize("signature", [0, SIGNED])
def test_registers_of_makecontext(tmp_path: Path, signature: int) -> None:
    job = Job("pip", is_aarch64=True, signature=signature, is_swapped=False)
    target = job.target(tmp_path)
    view = ProcessView(target, decode(target))
    for number in range(1, RANKS):
        found = view.contexts.saved(view.rank(number))
        assert (found[SP], found[PC]) == (job.pointer(number), TEXT + 0x20)
        assert [found[one] for one in range(31)] == [1000 * number + one for one in range(31)]


def test_freed_foreign_and_unsaved_threads(tmp_path: Path) -> None:
    table = decode(Job("pip", is_aarch64=True, stale=(1,), unsaved=(3,)).target(tmp_path))
    believed = {rank.rank: rank for rank in table.ranks if isinstance(rank.stack, Region)}
    assert sorted(believed) == [0, 2, 3]
    assert isinstance(believed[3].context, Absent)


def test_two_threads_of_one_rank_are_not_chosen_between(tmp_path: Path) -> None:
    table = decode(Job("none", is_aarch64=True, twice=(1,)).target(tmp_path))
    assert isinstance(next(rank for rank in table.ranks if rank.rank == 1).stack, Absent)
