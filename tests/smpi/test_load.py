"""`inspector load` of SMPI's ranks: by samples or by the kernel, shares of the time are as the program gives them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import StartJob
from tests.support.smpi.jobs import command, needs_smpi, process_of
from tests.support.waiting import wait_until

pytestmark = needs_smpi
RANKS = 4
# Rank r computes r + 1 times as long as rank 0, by its kernel thread's processor time, and then waits for the others.
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long long processor_time(void) { /* SMPI would give the simulated time */
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
int main(int count, char **words) {
    int me;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) puts("begins");
    fflush(stdout);
    for (;;) {
        long long until = processor_time() + (me + 1) * 400000LL;
        while (processor_time() < until) {}
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
"""


def loads_of(factory: str, start_job: StartJob, folder: Path) -> Any:
    """What `inspector load` prints of four seconds of the program."""
    source, program = folder / "uneven.c", folder / "uneven"
    source.write_text(SOURCE)
    subprocess.run(["smpicc", "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=120)
    settings = (f"--cfg=contexts/factory:{factory}", "--cfg=smpi/simulate-computation:no")
    job = start_job(*command(folder, RANKS, program, *settings))
    job.wait_for("begins")
    pid = wait_until(lambda: process_of(job), "smpirun has started no smpimain")
    asked = [sys.executable, "-m", "inspector", "load", str(pid), "--json", "--every", "4s", "--duration", "5s"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=240, check=True)
    loads = json.loads(done.stdout.splitlines()[0])
    assert loads["traffic"] is None and [rank["rank"] for rank in loads["ranks"]] == list(range(RANKS))
    return loads


def test_ranks_that_take_turns_are_sampled(start_job: StartJob, tmp_path: Path) -> None:
    loads = loads_of("raw", start_job, tmp_path)
    assert loads["source"] == "sampled" and 0 < loads["error"] < 0.5
    for rank in loads["ranks"]:
        assert rank["busy"] / loads["seconds"] == pytest.approx((rank["rank"] + 1) / 10, abs=loads["error"] + 0.05)


def test_the_kernel_counts_ranks_with_threads_of_their_own(start_job: StartJob, tmp_path: Path) -> None:
    loads = loads_of("thread", start_job, tmp_path)
    assert loads["source"] == "threads"
    total = sum(rank["busy"] for rank in loads["ranks"])
    for rank in loads["ranks"]:
        assert rank["busy"] / total == pytest.approx((rank["rank"] + 1) / 10, abs=0.05)
