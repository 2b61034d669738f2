"""Reads in a pause are of one moment; ten million pairs, by hand: python -m tests.support.inspector.torn_reads."""

from __future__ import annotations

from array import array
from pathlib import Path

from pieglobalsfind.targets.live import LiveTarget
from tests.support.inspector.torn_reads import PAIRS, RANKS, build, command, read_all, why_torn
from tests.support.running import StartJob

PAUSES = 20


def test_pairs_of_one_moment(start_job: StartJob, tmp_path: Path) -> None:
    job = start_job(*command(build(tmp_path)))
    job.wait_for("ready")
    live = LiveTarget(job.pid)
    for _ in range(PAUSES):
        contents = read_all(live)
        assert sorted(contents) == list(range(RANKS))
        assert {rank: why_torn(content) for rank, content in contents.items() if why_torn(content)} == {}


def test_what_is_torn_is_seen() -> None:
    """Two pages of two moments: the second one is older, or more than a round newer."""
    page = [7] * PAIRS
    assert why_torn(array("Q", [*page, *page]).tobytes()) == ""
    assert why_torn(array("Q", [8] * 5 + [7] * (2 * PAIRS - 5)).tobytes()) == ""
    for second in (5, 8, 9):
        assert why_torn(array("Q", [*page, *([second] * PAIRS)]).tobytes())
    assert why_torn(array("Q", [8] * 5 + [7] * 5 + [8] * 6).tobytes())
