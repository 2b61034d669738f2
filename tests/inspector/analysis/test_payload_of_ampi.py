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
    payloads = read_payload(job_of(Job(method).target(tmp_path)))
    assert [payload.rank for payload in payloads] == list(range(RANKS))
    assert {payload.total for payload in payloads} == {MEGABYTE + USED}, payloads
    assert all(payload.gaps > 0 for payload in payloads) == (method != "none")
