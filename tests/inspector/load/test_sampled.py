"""Samples of load, on ranks of which it is known which one runs."""

from __future__ import annotations

import pytest

from inspector.load.loads import SAMPLED
from inspector.load.sampled import sample
from inspector.load.sampling_error import worst_error
from pieglobalsfind.model import Absent
from pieglobalsfind.targets.live import LiveTarget
from tests.support.inspector.ranks import SOURCES, StartRanks


def test_the_rank_that_runs(start_ranks: StartRanks) -> None:
    """Rank 3 runs all the time; the others wait."""
    job = start_ranks(SOURCES / "waits.c", loops=True)
    loads = sample(LiveTarget(job.pid), 0.3, lambda seconds: False)
    assert loads.source == SAMPLED and isinstance(loads.traffic, Absent)
    assert [rank.busy for rank in loads.ranks] == [0, 0, 0, loads.seconds]
    (element,) = loads.elements
    assert element.idle == 0 and element.elapsed == loads.seconds


def test_no_rank_runs(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "ring.c")
    loads = sample(LiveTarget(job.pid), 0.1, lambda seconds: False)
    assert all(rank.busy == 0 for rank in loads.ranks)
    assert [element.idle for element in loads.elements] == [loads.seconds]


def test_the_user_ends_it(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "ring.c")
    assert "1 looks" in sample(LiveTarget(job.pid), 1000, lambda seconds: True).how


def test_errors() -> None:
    """Of a half, with 95 %: as sqrt(p (1 - p) / n)."""
    assert worst_error(100) == pytest.approx(0.098, abs=1e-4)
    assert worst_error(1) == pytest.approx(0.98, abs=1e-3)
