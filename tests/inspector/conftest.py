"""Jobs of the embedded runtime that stand still, with globals that tests know."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Job, StartJob
from tests.waiting import wait_until_it_loops

SOURCES = Path(__file__).parent / "sources"

StartRanks = Callable[..., Job]


@pytest.fixture
def start_ranks(
    tmp_path: Path, rankrun: Path, rankcc: Path, rankcxx: Path, rankfort: Path, start_job: StartJob
) -> StartRanks:
    """Build `source`, run it under `ranks` ranks with further options of rankrun, and wait until all ranks wait but
    for one that `loops`."""

    def start(source: Path, *options: str, ranks: int = 4, loops: bool = False) -> Job:
        binary = tmp_path / f"{source.stem}.so"
        compiler = {".c": rankcc, ".cpp": rankcxx, ".f90": rankfort}[source.suffix]
        subprocess.run([compiler, "-g", str(source), "-o", str(binary)], check=True, cwd=tmp_path, timeout=120)
        job = start_job(rankrun, "-n", ranks, *options, binary)
        job.wait_for("ready")
        if loops:
            wait_until_it_loops(job.pid)
        else:
            job.wait_until_still()
        return job

    return start
