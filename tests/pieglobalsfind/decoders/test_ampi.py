"""Discovery of stock AMPI on fabricated jobs of every method: true, damaged, moved, stale, starting."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import decode as ampi
from pieglobalsfind.decoders.ampi.runtime_variables import Space
from pieglobalsfind.model import READY, RUNNING, Absent, Rank, RankTable, Rebase, Region, TlsBlock
from pieglobalsfind.target import KernelThread
from tests.support.fabricate.ampi import LOADER, MEGABYTE, RANKS, TLS_SIZE, USED, Job
from tests.support.fabricate.memory import Changing, MemoryTarget

METHODS = ("pie", "pip", "fs", "tls", "none")
SPACE = Space(0x400000000, 0x400000000 + 50 * MEGABYTE, MEGABYTE, 4)


def _decode(job: Job, folder: Path) -> RankTable:
    table = decode(job.target(folder))
    assert table.runtime == "AMPI"
    return table


def _believed(table: RankTable) -> dict[int, Rank]:
    return {rank.rank: rank for rank in table.ranks if isinstance(rank.stack, Region)}


def test_every_share_belongs_to_its_rank_and_the_last_to_nobody() -> None:
    assert [SPACE.begin(rank) for rank in range(5)] == [0x400000000 + 10 * MEGABYTE * rank for rank in range(5)]
    assert [SPACE.rank_at(SPACE.begin(rank) + 5) for rank in range(5)] == [0, 1, 2, 3, None]
    assert SPACE.rank_at(SPACE.start - 1) is None


@pytest.mark.parametrize("change", [{"count": 0}, {"count": 1 << 30}, {"slot": 3}, {"end": 0}, {"count": 50}])
def test_impossible_values_do_not_validate(change: dict[str, int]) -> None:
    assert SPACE.is_valid
    assert not dataclasses.replace(SPACE, **change).is_valid


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("before", [0x98, 0xA0, 0xA8])
def test_the_whole_truth_of_a_sound_job(tmp_path: Path, method: str, before: int) -> None:
    job = Job(method, before, running=2)
    table = _decode(job, tmp_path)
    assert (table.method, table.warnings, table.rank_count) == (method, (), RANKS)
    for rank in table.ranks:
        assert rank.stack == Region(job.begin(rank.rank), MEGABYTE)
        assert rank.state == (RUNNING if rank.rank == 2 else READY)
        assert isinstance(rank.heap, Region)
        assert rank.heap.end == job.begin(rank.rank) + MEGABYTE + USED
        if rank.rank != 2:
            assert rank.context == job.context(rank.rank)
    assert isinstance(table.ranks[2].context, Absent)
    assert [rank.rank for rank in table.ranks] == list(range(RANKS))


@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
def test_copies_are_the_ranks_own(tmp_path: Path, method: str) -> None:
    job = Job(method)
    for rank in _decode(job, tmp_path).ranks:
        (copy,) = rank.placements
        assert isinstance(copy, Rebase)
        assert copy.copy == job.copy(rank.rank)


def test_a_tls_block_ends_at_the_thread_pointer_that_the_thread_has(tmp_path: Path) -> None:
    job = Job("tls")
    for rank in _decode(job, tmp_path).ranks:
        pointer = job.begin(rank.rank) + MEGABYTE + TLS_SIZE
        assert rank.placements == (TlsBlock(0, pointer, TLS_SIZE, True, 0),)


@pytest.mark.parametrize("method", METHODS)
def test_a_freed_thread_keeps_its_form_and_is_nobodys(tmp_path: Path, method: str) -> None:
    assert sorted(_believed(_decode(Job(method, stale=(1, 3)), tmp_path))) == [0, 2]


@pytest.mark.parametrize("method", METHODS)
def test_ranks_that_were_never_switched_away_from_have_no_context(tmp_path: Path, method: str) -> None:
    table = _decode(Job(method, running=0, unsaved=(1,)), tmp_path)
    assert table.ranks[1].context == ampi.NOT_SAVED
    assert isinstance(table.ranks[2].context, int)


def test_two_threads_of_one_rank_are_not_chosen_between(tmp_path: Path) -> None:
    table = _decode(Job("pie", twice=(1,)), tmp_path)
    assert isinstance(table.ranks[1].stack, Absent)
    assert "several threads" in table.ranks[1].stack.reason


def test_a_thread_structure_of_another_form_is_reported_and_not_used(tmp_path: Path) -> None:
    table = _decode(Job("pie", no_tokens=True), tmp_path)
    assert table.warnings == (ampi.NOT_THREADS,)
    assert not _believed(table)


@pytest.mark.parametrize("method", METHODS)
def test_a_range_that_does_not_validate_gives_no_rank_numbers_as_true(tmp_path: Path, method: str) -> None:
    table = _decode(Job(method, slot=3), tmp_path)
    assert (ampi.MISMATCH if method == "pie" else ampi.UNKNOWN_LAYOUT) in table.warnings
    assert method == "pie" or not table.ranks


@pytest.mark.parametrize("method", METHODS)
def test_a_job_that_starts_is_no_unknown_layout(tmp_path: Path, method: str) -> None:
    absent = tuple(range(RANKS))
    table = _decode(Job(method, is_starting=True, stale=absent, absent=absent), tmp_path)
    assert (table.ranks, table.warnings) == ((), (ampi.STARTING,))


def without_copies(target: MemoryTarget) -> MemoryTarget:
    """The moment before the ranks' objects have been loaded."""
    return dataclasses.replace(target, mapped=[mapped for mapped in target.mapped if not mapped.path.endswith(".so")])


@pytest.mark.parametrize("method", ["pip", "fs"])
def test_a_job_whose_map_is_older_than_its_ranks_is_no_unknown_layout(tmp_path: Path, method: str) -> None:
    """The map is read first; objects that are loaded before the rest is read are not in it."""
    whole = Job(method).target(tmp_path)
    table = decode(Changing([without_copies(whole), whole]))
    assert ([rank.rank for rank in table.ranks], table.warnings) == (list(range(RANKS)), ())
    never_still = decode(Changing([without_copies(whole), whole] * ampi.MOST_TRIES * 2))
    assert (never_still.ranks, never_still.warnings) == ((), (ampi.NO_RANKS,))


@pytest.mark.parametrize("method", ["pip", "fs", "tls", "none"])
def test_a_job_without_threads_is_said_to_start_or_end(tmp_path: Path, method: str) -> None:
    job = Job(method, stale=tuple(range(RANKS)))
    table = _decode(job, tmp_path)
    assert (table.ranks, len(table.warnings)) == ((), 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_stack_pointer_tells_who_runs_and_on_which_thread(tmp_path: Path, method: str) -> None:
    job = Job(method, running=0)
    target = job.target(tmp_path)
    target.kernel_threads = (KernelThread(4711, {7: job.begin(3) + 0x8000, 16: LOADER + 0x1100}),)
    table = decode(target)
    assert (table.ranks[3].state, table.ranks[3].kernel_thread) == (RUNNING, 4711)


def _with_and_without_symbols(folder: Path, **how: Any) -> tuple[RankTable, RankTable]:
    """What is found of a job on whose rank 2 a kernel thread is, and of the same one with a stripped loader."""
    tables = []
    for stripped in (False, True):
        place = folder / f"{stripped}"
        place.mkdir()
        job = Job(running=2, stripped=stripped, **how)
        target = job.target(place)
        target.kernel_threads = (KernelThread(4711, {7: job.begin(2) + 0x8000, 16: LOADER + 0x1100}),)
        tables.append(decode(target))
    return tables[0], tables[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("absent", [(), (0, 3)])
def test_a_stripped_loader_s_threads_tell_what_its_symbols_do(
    tmp_path: Path, method: str, absent: tuple[int, ...]
) -> None:
    """Also in a process that ranks have left, whose freed threads keep their form."""
    known, rank_table = _with_and_without_symbols(tmp_path, method=method, absent=absent, stale=absent)
    assert (rank_table.warnings, rank_table.evidence) == ((), ampi.EVIDENCE_STRIPPED)
    assert (rank_table.runtime, rank_table.method, rank_table.rank_count) == ("AMPI", method, RANKS)
    assert rank_table.entry_function == known.entry_function
    assert [rank.rank for rank in rank_table.ranks] == [one for one in range(RANKS) if one not in absent]
    for one, other in zip(rank_table.ranks, known.ranks):
        assert (one.rank, one.state, one.kernel_thread) == (other.rank, other.state, other.kernel_thread)
        assert (one.stack, one.heap, one.range, one.context) == (other.stack, other.heap, other.range, other.context)
        assert [getattr(x, "copy", x) for x in one.placements] == [getattr(x, "copy", x) for x in other.placements]


@pytest.mark.parametrize("method", METHODS)
def test_who_runs_in_a_stripped_job_is_nobody_s_guess(tmp_path: Path, method: str) -> None:
    """A kernel thread whose stack pointer is not known may be on any rank's stack."""
    target = Job(method, stripped=True, is_live=True).target(tmp_path)
    target.kernel_threads = (KernelThread(4711, Absent("it runs")),)
    assert all(isinstance(rank.context, Absent) for rank in decode(target).ranks)


@pytest.mark.parametrize("method", METHODS)
def test_a_stripped_loader_s_shares_are_not_guessed(tmp_path: Path, method: str) -> None:
    table = _decode(Job(method, stripped=True, silent=tuple(range(RANKS))), tmp_path)
    assert ampi.STRIPPED in table.warnings
    assert len(table.ranks) == (RANKS if method == "pie" else 0)
    assert not _believed(table)


def test_one_thread_s_record_is_enough_for_the_numbers_of_all(tmp_path: Path) -> None:
    table = _decode(Job("none", stripped=True, silent=(0, 1, 3)), tmp_path)
    assert table.rank_count == RANKS and [rank.rank for rank in table.ranks] == list(range(RANKS))
    assert [isinstance(rank.heap, Region) for rank in table.ranks] == [False, False, True, False]


@pytest.mark.parametrize("method", ["pip", "fs"])
def test_a_stack_that_returns_to_two_copies_tells_neither(tmp_path: Path, method: str) -> None:
    table = _decode(Job(method, stripped=True, mixed=(1,)), tmp_path)
    assert table.warnings == (ampi.UNPLACED.format("1"),)
    assert [len(rank.placements) for rank in table.ranks] == [1, 0, 1, 1]
