"""Snapshots of stock AMPI's ranks, which publish themselves nowhere: what discovery reads of a job is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.commands.snapshot import write_process
from inspector.job.job import job_of
from pieglobalsfind.decoders import decode
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.snapshot import SnapshotTarget
from tests.support.fabricate.ampi import Job


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("method", ["pie", "pip", "fs", "tls", "none"])
def test_the_same_ranks_are_found(tmp_path: Path, method: str, stripped: bool) -> None:
    """However much is kept; a thread that was freed is not a rank's there either."""
    fabricated = Job(method, running=2, stale=(1,), absent=(1,), stripped=stripped)
    target = fabricated.target(tmp_path)
    target.kernel_threads = (KernelThread(4711, {7: fabricated.begin(2) + 0x8000, 16: 0x1100}),)
    job = job_of(target)
    assert {rank.evidence.tier for rank in job.table.ranks} == {"runtime"} and len(job.table.ranks) > 2
    for memory in ("none", "ranks", "data", "all"):
        file = tmp_path / f"snapshot.{memory}"
        write_process(job, memory, str(file))
        kept = decode(SnapshotTarget(str(file)))
        assert (kept.ranks, kept.warnings) == (job.table.ranks, job.table.warnings)
    taken = SnapshotTarget(str(file))
    for mapping in target.maps():  # of what was never touched it knows that it is zeros
        size = mapping.end - mapping.start
        assert taken.read(mapping.start, size) == target.read(mapping.start, size)
