"""`inspector report --mpi` under real MPICH: each collector sees one process of the job alone, as on a node of its own.

The other processes are hidden from a collector by a mount over their folders in /proc, which only root may make.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.jobs import members_of
from tests.conftest import BIN, Job, StartJob

from .conftest import Build
from .test_processes import children
from .test_tools import RANKS, check_ranks

NODE = """#!/bin/sh
place=0
for pid in $PIDS; do
    [ $place = $PMI_RANK ] || mount -t tmpfs none /proc/$pid
    [ $place = $PMI_RANK ] || [ "$PMI_RANK" != "$HANGS" ] || mkfifo /proc/$pid/maps # who reads it waits for ever
    place=$((place + 1))
done
exec "$@"
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="hiding processes from each other takes root")


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    found = start_job(rankrun, "-n", RANKS, "--procs", 3, build("placed.c"))
    found.wait_for("waits", times=RANKS)
    return found


def collect(job: Job, folder: Path, count: int, *words: object, hangs: str = "") -> subprocess.CompletedProcess[str]:
    """What the collectors print together; each has a cache of its own, as on nodes with disks of their own."""
    node, libraries = folder / "node.sh", folder / "libraries"
    node.write_text(NODE)
    node.chmod(0o755)
    libraries.mkdir(exist_ok=True)
    (libraries / "libmpi.so.12").symlink_to("libmpich.so.12")  # mpi4py's name for it, and Debian's
    (libraries / "libmpich.so.12").symlink_to(mpich())
    job_id = members_of(str(job.pid)).name.partition(" ")[2]
    environment = {
        **os.environ,
        "PIDS": " ".join(map(str, children(job.pid))),
        "HANGS": hangs,
        "LD_LIBRARY_PATH": str(libraries),
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
            os.killpg(process.pid, 15)  # the launcher takes its processes with it
            process.wait(60)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def mpich() -> str:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.rpartition(" ")[2] for line in listed.splitlines() if "libmpich.so.12 " in line)


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
