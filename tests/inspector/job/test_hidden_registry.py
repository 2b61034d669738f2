"""Ranks that never wait long in a runtime whose registry is hidden: copies alone tell of them, at every look.

Every rank has its number, its own globals, untorn, and its stack: that of its kernel thread, or where the runtime has
saved its registers.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from pieglobalsfind.errors import TargetError
from pieglobalsfind.model import RUNNING, SCAN
from pieglobalsfind.targets.live import LiveTarget
from tests.inspector.job.test_pause import ELEMENTS, FOR_EVER, RANKS, looked_at, paused, program
from tests.support.busy import WAYS, why_impossible
from tests.support.busy_values import value_of
from tests.support.hidden_registry import rankrun_without_registry
from tests.support.running import Job, StartJob

__all__ = ["program"]
TURNS = 400000  # longer than the first look, for which files are read
LOOKS = 8  # of 0.4 s: all memory is searched for copies each time


@pytest.fixture(scope="module")
def rankrun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rankrun_without_registry(tmp_path_factory.mktemp("hidden") / "runtime")


def start(start_job: StartJob, rankrun: Path, program: Path, way: str, turns: int = FOR_EVER) -> Job:
    job = start_job(rankrun, "-n", RANKS, "--pes", ELEMENTS, program, way, turns)
    job.wait_for("begins")
    return job


@pytest.mark.timeout(900)  # seconds: a loaded machine takes some for each look
@pytest.mark.parametrize("way", WAYS)
def test_every_rank_at_every_look(start_job: StartJob, rankrun: Path, program: Path, way: str) -> None:
    live = LiveTarget(start(start_job, rankrun, program, way).pid)
    running = 0
    for _ in range(LOOKS):
        found, seen = paused(live, looked_at, with_data=True)
        assert found.table.evidence.tier == SCAN, "the registry is not hidden"
        assert [rank.rank for rank in found.table.ranks] == list(range(RANKS))
        assert sorted(seen.calls) == list(range(RANKS)) and seen.missing == {}
        for calls in seen.calls.values():
            assert why_impossible([call.function for call in calls], way) == ""
        for rank in found.table.ranks:
            assert value_of(found, rank, "before") - value_of(found, rank, "after") in (0, 1)
            assert value_of(found, rank, "number", size=4) == rank.rank
        running += sum(rank.state == RUNNING for rank in found.table.ranks)
    assert running > 0, "no rank was seen to run"


def test_the_result_is_the_same(start_job: StartJob, rankrun: Path, program: Path) -> None:
    sums, seen = [], 0
    for looks in (0, LOOKS):
        job = start(start_job, rankrun, program, "exchange", TURNS)
        with suppress(TargetError):  # it may end before the last look
            for _ in range(looks):
                paused(LiveTarget(job.pid), looked_at)
                seen += 1
        assert job.finish() == 0
        sums += [line for line in job.lines if line.startswith("sum ")]
    assert len(sums) == 2 and sums[0] == sums[1]
    assert seen > 0, "the job ended before the first look"
