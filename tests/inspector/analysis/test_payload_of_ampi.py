"""What moves with a rank of stock AMPI: all that its isomalloc has given out for it, as tests/charm finds it packed."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.analysis.payload import read_payload
from inspector.job.job import job_of
from tests.support.fabricate.ampi import MEGABYTE, RANKS, USED, Job


@pytest.mark.parametrize("method", ["pie", "tls", "none"])
def test_a_rank_is_sent_as_one_piece(tmp_path: Path, method: str) -> None:
    """Stack, copies, thread-local storage, heap, and what lies between them, once each."""
    found = read_payload(job_of(Job(method).target(tmp_path)))
    assert [one.rank for one in found] == list(range(RANKS))
    assert {one.total for one in found} == {MEGABYTE + USED}, found
    assert all(one.gaps > 0 for one in found) == (method != "none")
