"""Stock AMPI's ranks at one moment, whatever they do: at every look all of them, with stacks that can be."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from inspector.job import read_stacks
from inspector.job.job import Job, job_of
from pieglobalsfind.errors import TargetError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.session.sampler import Sampler
from pieglobalsfind.targets.live import LiveTarget
from tests.inspector.job.test_sampling import check
from tests.support.busy import SOURCE, WAYS, why_impossible
from tests.support.busy_values import value_of
from tests.support.charm.jobs import AMPICC, COPIES, WORKERS, build

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")

RANKS = 12
LOOKS = 100
FOR_EVER = 1 << 40
PRIVATE_SOURCE = SOURCE.replace("\nint number", "\nPRIVATE int number")


@contextmanager
def started(folder: Path, way: str, turns: int, ranks: int = RANKS) -> Iterator[subprocess.Popen[str]]:
    command = ["./prog", f"+vp{ranks}", *WORKERS, way, str(turns)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout is not None and any(line.startswith("begins") for line in job.stdout)
            yield job
        finally:
            job.kill()


@pytest.mark.parametrize("method", COPIES)
def test_later_looks_know_the_ranks(method: str, tmp_path: Path) -> None:
    """A sampler reads again what changes of them, and sees every rank where it can be."""
    build(tmp_path, method, "c", source=PRIVATE_SOURCE)
    with started(tmp_path, "exchange", FOR_EVER) as process:
        sampler = Sampler(LiveTarget(process.pid))
        check(sampler.look(), RANKS, "exchange")
        again = 0
        for _ in range(LOOKS):
            sample = sampler.look_again()
            again += sample is not None
            check(sample or sampler.look(), RANKS, "exchange")
        assert again > 0, "no look has used what was known"


def seen(job: Job) -> tuple[Job, read_stacks.Stacks]:
    return job, read_stacks.read_one(job, rankset.parse("all"), with_runtime=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", COPIES)
def test_every_rank_at_every_look(method: str, tmp_path: Path, way: str) -> None:
    build(tmp_path, method, "c", source=PRIVATE_SOURCE)
    check_looks(tmp_path, way, RANKS)


def check_looks(folder: Path, way: str, ranks: int) -> None:
    """All stacks are possible in the program, and globals that change one after the other are never torn."""
    with started(folder, way, FOR_EVER, ranks) as process:
        live = LiveTarget(process.pid)
        for _ in range(LOOKS):
            job, found = at_one_moment([plan_for(live, True)], True, lambda paused: seen(job_of(paused[0])))
            assert [rank.rank for rank in job.table.ranks] == list(range(ranks))
            assert sorted(found.calls) == list(range(ranks)) and found.missing == {}
            for calls in found.calls.values():
                functions = ["main" if call.function == "AMPI_Main" else call.function for call in calls]
                assert why_impossible(functions, way) == ""
            for rank in job.table.ranks:
                assert value_of(job, rank, "before") - value_of(job, rank, "after") in (0, 1)
                assert value_of(job, rank, "number", size=4) == rank.rank


@pytest.mark.parametrize("method", COPIES)
def test_the_result_is_the_same(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "c", source=PRIVATE_SOURCE)
    check_result(tmp_path, RANKS, turns=20000)


def check_result(folder: Path, ranks: int, turns: int) -> None:
    """A job that is looked at until it ends, 100 times at most, prints what it prints alone."""
    sums, looks = [], 0
    for is_looked_at in (False, True):
        with started(folder, "exchange", turns, ranks) as process:
            live = LiveTarget(process.pid)
            with suppress(TargetError):  # it may end
                while is_looked_at and looks < LOOKS:
                    at_one_moment([plan_for(live, False)], False, lambda paused: seen(job_of(paused[0])))
                    looks += 1
            assert process.stdout is not None
            sums += [line for line in process.stdout if line.startswith("sum ")]
            assert process.wait(60) == 0
    assert len(sums) == 2 and sums[0] == sums[1]
    assert looks > 0, "the job ended before the first look"
