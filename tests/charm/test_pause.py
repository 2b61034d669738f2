"""Stock AMPI's ranks at one moment, whatever they do: at every look all of them, with stacks that can be."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inspector.job import stacks
from inspector.job.job import Job, job_of
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


@contextmanager
def started(folder: Path, way: str, turns: int) -> Iterator[subprocess.Popen[str]]:
    command = ["./prog", f"+vp{RANKS}", *WORKERS, way, str(turns)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout is not None and any(line.startswith("begins") for line in job.stdout)
            yield job
        finally:
            job.kill()


@pytest.mark.parametrize("method", COPIES)
def test_later_looks_know_the_ranks(method: str, tmp_path: Path) -> None:
    """A sampler reads again what changes of them, and sees every rank where it can be."""
    build(tmp_path, method, "c", source=SOURCE.replace("\nint number", "\nPRIVATE int number"))
    with started(tmp_path, "exchange", FOR_EVER) as process:
        sampler = Sampler(LiveTarget(process.pid))
        check(sampler.look(), RANKS, "exchange")
        again = 0
        for _ in range(LOOKS):
            sample = sampler.look_again()
            again += sample is not None
            check(sample or sampler.look(), RANKS, "exchange")
        assert again > 0, "no look has used what was known"


def seen(job: Job) -> tuple[Job, stacks.Stacks]:
    return job, stacks.read_one(job, rankset.parse("all"), with_runtime=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", COPIES)
def test_every_rank_at_every_look(method: str, tmp_path: Path, way: str) -> None:
    """All stacks are possible in the program, and globals that change one after the other are never torn."""
    build(tmp_path, method, "c", source=SOURCE.replace("\nint number", "\nPRIVATE int number"))
    with started(tmp_path, way, FOR_EVER) as process:
        live = LiveTarget(process.pid)
        for _ in range(LOOKS):
            job, found = at_one_moment([plan_for(live, True)], True, lambda paused: seen(job_of(paused[0])))
            assert [rank.rank for rank in job.table.ranks] == list(range(RANKS))
            assert sorted(found.calls) == list(range(RANKS)) and found.missing == {}
            for calls in found.calls.values():
                functions = ["main" if call.function == "AMPI_Main" else call.function for call in calls]
                assert why_impossible(functions, way) == ""
            for rank in job.table.ranks:
                assert value_of(job, rank, "before") - value_of(job, rank, "after") in (0, 1)
                assert value_of(job, rank, "number", size=4) == rank.rank


@pytest.mark.parametrize("method", COPIES)
def test_the_result_is_the_same(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "c", source=SOURCE.replace("\nint number", "\nPRIVATE int number"))
    sums = []
    for looks in (0, LOOKS):
        with started(tmp_path, "exchange", 20000) as process:
            live = LiveTarget(process.pid)
            for _ in range(looks):
                if process.poll() is None:
                    at_one_moment([plan_for(live, False)], False, lambda paused: seen(job_of(paused[0])))
            assert process.stdout is not None
            sums += [line for line in process.stdout if line.startswith("sum ")]
            assert process.wait(60) == 0
    assert len(sums) == 2 and sums[0] == sums[1]
