"""Memory that no rank ever touched is not read, however much of it there is, and what lies beside it is still found."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main
from pieglobalsfind.targets.live import LiveTarget
from tests.support.running import Job, StartJob

RANKS, SIZE, PLACE = 8, 64 << 20, 40 << 20
MOST_READ = 32 << 20  # bytes: less than half of one rank's copy; code, data and files of debug information are read
SOURCE = f"""#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int my_rank, word;
char bulk[{SIZE}];
int *sent;
int main(int argc, char **argv) {{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    sent = &word;
    MPI_Bcast(&sent, sizeof sent, MPI_BYTE, 0, MPI_COMM_WORLD);
    memcpy(bulk + {PLACE}, &sent, sizeof sent);
    bulk[{PLACE} + 100] = my_rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == {RANKS - 1})
        for (puts("ready"), fflush(stdout);;)
            pause();
    MPI_Recv(&my_rank, 1, MPI_INT, my_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}}
"""


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a core file or of a process took."""
    sizes: list[int] = []
    read_file, read_process, copy_process = os.pread, LiveTarget._read_by_call, LiveTarget.copy_into

    def counted_file(descriptor: int, size: int, offset: int) -> bytes:
        data = read_file(descriptor, size, offset)
        sizes.append(len(data))
        return data

    def counted_process(self: LiveTarget, address: int, size: int) -> bytes:
        data = read_process(self, address, size)
        sizes.append(len(data))
        return data

    def counted_copy(self: LiveTarget, room: memoryview, vectors: array[int]) -> list[int]:
        sizes.append(sum(vectors[1::2]))
        return copy_process(self, room, vectors)

    monkeypatch.setattr(os, "pread", counted_file)
    monkeypatch.setattr(LiveTarget, "copy_into", counted_copy)
    monkeypatch.setattr(LiveTarget, "_read_by_call", counted_process)
    return sizes


@pytest.fixture
def job(tmp_path: Path, rankcc: Path, rankrun: Path, start_job: StartJob) -> Iterator[Job]:
    """It may leave a core file in the test's folder."""
    source, program = tmp_path / "sparse.c", tmp_path / "sparse"
    source.write_text(SOURCE)
    subprocess.run([str(rankcc), "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=120)
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    started = start_job(rankrun, "-n", RANKS, program)
    resource.setrlimit(resource.RLIMIT_CORE, before)
    started.wait_for("ready")
    yield started


@pytest.fixture
def core(job: Job, tmp_path: Path) -> Path:
    """The kernel's, with holes where nothing was touched."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core":
        pytest.skip(f"core files of this machine go to {pattern!r}")
    os.kill(job.pid, signal.SIGABRT)
    job.finish()
    path = next(path for path in (tmp_path / "core", tmp_path / f"core.{job.pid}") if path.exists())
    assert path.stat().st_size > RANKS * SIZE
    return path


def answered(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def check_findings(findings: list[dict[str, Any]]) -> None:
    """Of the pointer that a message brought: all ranks but its owner have it."""
    found = [finding["rank"] for finding in findings if finding["symbol"] == "sent"]
    assert found == list(range(1, RANKS))


def check_report(report: Any) -> None:
    check_findings(report["pointers"]["findings"])
    (bulk,) = [value for value in report["globals"] if value["name"] == "bulk"]
    assert bulk["verdict"] == "differs" and len(bulk["groups"]) == RANKS


def check_read(read_bytes: list[int]) -> None:
    assert 0 < sum(read_bytes) < MOST_READ, sorted(read_bytes)[-20:]


def test_pointers_of_a_process(job: Job, read_bytes: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    check_findings(answered(capsys, "pointers", job.pid)["findings"])
    check_read(read_bytes)


def test_pointers_of_a_core_file(core: Path, read_bytes: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    check_findings(answered(capsys, "pointers", core)["findings"])
    check_read(read_bytes)


def test_report_of_a_process(job: Job, read_bytes: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """What the pause copies counts, too."""
    check_report(answered(capsys, "report", job.pid))
    check_read(read_bytes)


def test_report_of_a_core_file(core: Path, read_bytes: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    check_report(answered(capsys, "report", core))
    check_read(read_bytes)
