"""A real SMPI job of AArch64 under qemu-user: values, owners, stacks and states as the program prints them.

AARCH64_SYSROOT names a folder with Debian's libsimgrid-dev for arm64, its libc and what else they need, unpacked.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import pieglobalsfind
from pieglobalsfind.machine.aarch64 import AARCH64
from tests.aarch64.conftest import PREFIX, emulator
from tests.support.running import Job, StartJob
from tests.support.smpi.jobs import SOURCES, parse, platform
from tests.support.waiting import wait_until

SYSROOT = Path(os.environ.get("AARCH64_SYSROOT", "/nowhere"))
LIBRARIES = SYSROOT / "usr/lib/aarch64-linux-gnu"
RANKS = 4

pytestmark = pytest.mark.skipif(
    not (LIBRARIES / "simgrid/smpimain").exists(),
    reason="AARCH64_SYSROOT has to name a folder with Debian's libsimgrid-dev for arm64",
)


def program(folder: Path) -> Path:
    """As smpicc builds it."""
    command = [f"{PREFIX}gcc", "-g", "-O0", "-fPIC", "-shared", "-include", SYSROOT / "usr/include/smpi/smpi_helpers.h"]
    command += [f"-I{SYSROOT}/usr/include/smpi", f"-I{SYSROOT}/usr/include", SOURCES / "truth.c"]
    command += ["-o", folder / "truth", LIBRARIES / "libsimgrid.so", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run([str(word) for word in command], check=True, timeout=120)
    return folder / "truth"


def start(start_job: StartJob, folder: Path, factory: str) -> Job:
    """As smpirun starts it."""
    description, hosts = platform(folder, RANKS)
    options = ["smpi/privatization:1", f"smpi/np:{RANKS}", f"smpi/hostfile:{hosts}", f"contexts/factory:{factory}"]
    words = [emulator(), "-L", SYSROOT, LIBRARIES / "simgrid/smpimain", program(folder)]
    words += [*(f"--cfg={option}" for option in options), "--log=root.thres:error", description]
    job = start_job(*words, environment={**os.environ, "SMPI_GLOBAL_SIZE": str(RANKS)})
    job.wait_for("ready", timeout=120)
    return job


@pytest.mark.parametrize("factory", ["boost", "ucontext", "thread"])
def test_a_job_is_as_it_says(start_job: StartJob, tmp_path: Path, factory: str) -> None:
    running = start(start_job, tmp_path, factory)
    told = parse(running.lines)
    assert len(told) == RANKS * 4
    with pieglobalsfind.open(pid=running.pid) as job:
        assert job.table().processor is AARCH64 and job.table().runtime == "SMPI"
        for truth in told:
            assert job.owner(truth.address).rank == truth.rank, truth
            if truth.name in ("g_rank", "s_rank", "t_rank"):
                assert getattr(job.globals(truth.name)[truth.rank], "text", None) == str(truth.value), truth
        if factory != "thread":  # threads of an emulator have registers that can't be read
            wait_until(lambda: job.ranks()[0].state == "running", "rank 0 does not run")
            for rank in range(1, RANKS):
                functions = [frame.function for frame in job.stack(rank)]
                assert functions[:5] == ["MPI_Recv", "below", "below", "below", "main"], functions
