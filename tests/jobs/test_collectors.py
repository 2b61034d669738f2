"""`inspector report --mpi` under real MPICH: each collector sees one process of the job alone, as on a node of its own.

The other processes are hidden from a collector by a mount over their folders in /proc, which only root may make.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.jobs import members_of
from pieglobalsfind.processes import descendants, processes
from tests.conftest import BIN, Job, StartJob

from .conftest import Build
from .opened_files import watched
from .test_processes import children
from .test_tools import RANKS, check_ranks

NODE = """#!/bin/sh
place=0
for pid in $PIDS; do
    [ $place = $PMI_RANK ] || mount -t tmpfs none /proc/$pid
    [ $place = $PMI_RANK ] || [ "$PMI_RANK" != "$HANGS" ] || mkfifo /proc/$pid/maps # who reads it waits for ever
    place=$((place + 1))
done
[ -z "$DEBUG" ] || mount --bind "$DEBUG.$PMI_RANK" "$DEBUG" # a disk of its own
export XDG_CACHE_HOME="$XDG_CACHE_HOME/$PMI_RANK"
exec "$@"
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="hiding processes from each other takes root")


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    found = start_job(rankrun, "-n", RANKS, "--procs", 3, build("placed.c"))
    found.wait_for("waits", times=RANKS)
    return found


def collect(
    job: Job, folder: Path, count: int, *words: object, hangs: str = "", debug: str = "", sees_all: bool = False
) -> subprocess.CompletedProcess[str]:
    """What the collectors print together; each has a cache of its own, as on nodes with disks of their own.

    `debug`: a file in place of which each collector has another one. `sees_all`: no process is hidden from it.
    """
    node = folder / "node.sh"
    node.write_text(NODE)
    node.chmod(0o755)
    job_id = members_of(str(job.pid)).name.partition(" ")[2]
    environment = {
        **os.environ,
        "PIDS": "" if sees_all else " ".join(map(str, children(job.pid))),
        "HANGS": hangs,
        "DEBUG": debug,
        "LD_LIBRARY_PATH": str(libraries(folder)),
    }
    report = [BIN / "inspector", "report", "--mpi", "--job", job_id, *words]
    launcher = ["mpiexec.mpich", "-disable-auto-cleanup", "-n", count, "unshare", "--mount", node]
    command = [str(one) for one in (*launcher, *report)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        if not hangs:
            output, errors = process.communicate(timeout=120)
            return subprocess.CompletedProcess(command, process.returncode, output, errors)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:  # to the report's end: the launcher itself waits for who hangs
            lines.append(line)
            if line == "}\n":
                break
        return subprocess.CompletedProcess(command, 0, "".join(lines), "")
    finally:
        if process.poll() is None:
            # All at once: a launcher that was asked to end them may wait for who hangs.
            for pid in (process.pid, *descendants(process.pid, processes())):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def mpich() -> str:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.rpartition(" ")[2] for line in listed.splitlines() if "libmpich.so.12 " in line)


def libraries(folder: Path) -> Path:
    """MPICH's library as mpi4py and Debian name it."""
    found = folder / "libraries"
    if not found.exists():
        found.mkdir()
        (found / "libmpi.so.12").symlink_to("libmpich.so.12")
        (found / "libmpich.so.12").symlink_to(mpich())
    return found


@pytest.mark.parametrize("count", [3, 4])
def test_one_report_of_all_nodes(count: int, job: Job, tmp_path: Path) -> None:
    """A node without any process of the job changes nothing."""
    done = collect(job, tmp_path, count, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check_ranks(found)
    assert found["warnings"] == []


def test_a_collector_alone_says_what_it_lacks(job: Job, tmp_path: Path) -> None:
    found = json.loads(collect(job, tmp_path, 1, "--json").stdout)
    assert "of 3 processes of the job 2 can't be found: 1, 2" in found["warnings"]
    # Process 0 has 0 and 5, and knows where 1 went.
    assert "nothing is known of ranks 2-4" in found["warnings"]
    assert [one["rank"] for one in found["payload"]] == [0, 5]


def test_a_collector_that_hangs_is_named(job: Job, tmp_path: Path) -> None:
    done = collect(job, tmp_path, 3, "--json", "--timeout", "8s", hangs="1")
    found = json.loads(done.stdout)
    assert any("collector 1 of 3 does not answer" in one for one in found["warnings"]), found["warnings"]
    assert any("1 can't be found: 1" in one for one in found["warnings"])
    assert [one["rank"] for one in found["payload"]] == [0, 3, 4, 5]


@pytest.fixture
def debug(build: Build) -> Path:
    """The debug information of the job's program, in a file of its own; and three copies of it."""
    program = build("placed.c")
    found = program.with_name("placed.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, found], check=True, timeout=60)
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={found}", program], check=True, timeout=60)
    for place in range(3):
        shutil.copy(found, f"{found}.{place}")
    return found


def test_debug_information_is_read_by_one_collector(
    start_job: StartJob, rankrun: Path, debug: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the kernel tells of files that are opened. Alone every collector reads, so what is seen can differ."""
    job = start_job(rankrun, "-n", RANKS, "--procs", 3, debug.with_name("placed-rankcc"))
    job.wait_for("waits", times=RANKS)
    copies = [Path(f"{debug}.{place}") for place in range(3)]

    def opened(count: int, cache: str, sees_all: bool = False) -> tuple[list[int], dict[str, Any]]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        with watched(copies) as files:
            done = collect(job, tmp_path, count, "--json", debug=str(debug), sees_all=sees_all)
            assert done.returncode == 0, done.stderr
            return [files.counts()[one] for one in copies], json.loads(done.stdout)

    alone, _ = opened(1, "alone")
    assert alone[0] > 0 and alone[1:] == [0, 0]
    together, found = opened(3, "together")
    check_ranks(found)
    assert together == alone, "collectors 1 and 2 have opened no debug information, collector 0 no more than alone"
    of_three, found = opened(1, "of three", sees_all=True)
    check_ranks(found)
    assert of_three == alone, "three processes on a node take no more than one"
    again, _ = opened(3, "together")
    assert again[0] <= alone[0] and again[1:] == [0, 0], "nor do they for the next report"
