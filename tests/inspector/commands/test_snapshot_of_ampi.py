"""Snapshots of stock AMPI's ranks, which publish themselves nowhere: what discovery reads of a job is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.commands.snapshot import regions
from inspector.job.job import job_of
from pieglobalsfind.decoders import decode
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.snapshot import SnapshotTarget, write
from tests.support.fabricate.ampi import Job


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("method", ["pie", "pip", "fs", "tls", "none"])
def test_the_same_ranks_are_found(tmp_path: Path, method: str, stripped: bool) -> None:
    """However much is kept; a thread that was freed is no rank's there either."""
    fabricated = Job(method, running=2, stale=(1,), absent=(1,), stripped=stripped)
    target = fabricated.target(tmp_path)
    target.kernel_threads = (KernelThread(4711, {7: fabricated.begin(2) + 0x8000, 16: 0x1100}),)
    job = job_of(target)
    assert {one.evidence.tier for one in job.table.ranks} == {"runtime"} and len(job.table.ranks) > 2
    for memory in ("none", "ranks", "data", "all"):
        file = tmp_path / f"snapshot.{memory}"
        write(target, regions(job, memory), job.taken, str(file))
        kept = decode(SnapshotTarget(str(file)))
        assert (kept.ranks, kept.warnings) == (job.table.ranks, job.table.warnings)
    held = sum(len(data) for one in target.maps() for _, data in SnapshotTarget(str(file)).parts(one.start, one.end))
    assert held == sum(one.end - one.start for one in target.maps())


def test_parts_are_what_is_held(tmp_path: Path) -> None:
    target = Job("none").target(tmp_path)
    (heap,) = (one for one in target.maps() if one.path == "[heap]")
    file = tmp_path / "snapshot"
    pages = [(heap.start, heap.start + 1), (heap.start + 0x1000, heap.start + 0x1001), (heap.end - 8, heap.end)]
    write(target, pages, "", str(file))
    found = list(SnapshotTarget(str(file)).parts(heap.start + 8, heap.end))
    assert [(start, start + len(data)) for start, data in found] == [
        (heap.start + 8, heap.start + 0x2000),
        (heap.end - 0x1000, heap.end),
    ]
    assert all(data == target.read(start, len(data)) for start, data in found)
