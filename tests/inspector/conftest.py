"""Jobs of the embedded runtime that stand still, with globals that tests know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.inspector.ranks import StartRanks
from tests.support.running import Job, StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops


@pytest.fixture
def start_ranks(
    tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, rankcxx: Path, rankfort: Path, start_job: StartJob
) -> StartRanks:
    """Build `source`, run it under `ranks` ranks with further options of rankrun, and wait until all ranks wait but
    for one that `loops`."""

    def start(source: Path, *options: str, ranks: int = 4, loops: bool = False) -> Job:
        compiler = {".c": rankcc, ".cpp": rankcxx, ".f90": rankfort}[source.suffix]
        binary = shared.copied([compiler, "-g", source], tmp_path / f"{source.stem}.so")
        job = start_job(rankrun, "-n", ranks, *options, binary)
        job.wait_for("ready")
        if loops:
            wait_until_it_loops(job.pid)
        else:
            job.wait_until_still()
        return job

    return start
