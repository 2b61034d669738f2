"""The program of docs/library.md, whose ranks wait for one another for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import Job, StartJob
from tests.support.sharing import Shared


@pytest.fixture
def ring(tmp_path: Path, shared: Shared, rankcc: Path) -> Path:
    """The built program."""
    return shared.copied([rankcc, "-g", Path(__file__).parent / "ring.c"], tmp_path / "ring")


@pytest.fixture
def held(ring: Path, rankrun: Path, start_job: StartJob) -> Job:
    """Four ranks of it that stand still."""
    job = start_job(rankrun, "-n", 4, ring)
    job.wait_until_still()
    return job
