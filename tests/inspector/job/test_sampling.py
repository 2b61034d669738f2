"""A sampler's later looks, which know the ranks already, against what the program can do, and against whole looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pieglobalsfind.session.sampler import Sample, Sampler
from pieglobalsfind.targets.live import LiveTarget
from tests.inspector.job.test_pause import RANKS, program, start
from tests.support.busy import WAYS, why_impossible
from tests.support.running import StartJob

__all__ = ["program"]
LOOKS = 60


def check(sample: Sample, ranks: int, way: str, switching: int = 0) -> None:
    """Every rank has a stack that is possible in the program, but for so many that are being switched."""
    assert sorted([*sample.calls, *sample.missing]) == list(range(ranks)) and len(sample.missing) <= switching
    for calls in sample.calls.values():
        functions = ["main" if call.function == "AMPI_Main" else call.function for call in calls]
        assert why_impossible(functions, way) == ""


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_at_every_look(start_job: StartJob, program: Path, way: str) -> None:
    job = start(start_job, program, way)
    sampler = Sampler(LiveTarget(job.pid))
    clocks = []
    for _ in range(LOOKS):
        sample = sampler.look()
        check(sample, RANKS, way)
        clocks.append(sample.clock)
    assert clocks == sorted(clocks) and len(set(clocks)) == LOOKS
