"""The target of a fault, and the faults that happen to it: it ends, execs, forks, stops, or a rank of it moves away."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Optional

from pieglobalsfind.jobs.processes import processes
from tests.support.running import BIN

RANKS = 4
MOST_PIDS = 200  # processes that are started to get a certain pid
SOURCE = """
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int mine;
double values[4] = {1, 2, 3, 4};
static void change(int number) {
    execl("/bin/sleep", "sleep", "600", NULL);
}
static void divide(int number) {
    if (fork() == 0)
        pause();
}
int main(int argc, char **argv) {
    int word;
    char byte;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    signal(SIGUSR1, change);
    signal(SIGUSR2, divide);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mine == 0)
        printf("ready %d\\n", getpid());
    fflush(stdout);
    if (mine == 0 && argc > 1) {
        if (read(0, &byte, 1) < 0)
            return 1;
        printf("moved %d\\n", MPIX_Migrate_to(1));
        fflush(stdout);
    }
    MPI_Recv(&word, 1, MPI_INT, mine, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""


def state_of(pid: int) -> str:
    """The kernel's letter for a process; "" if it has gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    return ""


class Job:
    """The target: a process of four ranks that wait, or two; `pid` is rank 0's, which can be moved if `is_mobile`."""

    def __init__(self, program: Path, is_mobile: bool = False) -> None:
        words = [str(BIN / "rankrun"), "-n", str(RANKS), *(["--procs", "2"] if is_mobile else []), str(program)]
        self.process = subprocess.Popen(
            [*words, *(["mobile"] if is_mobile else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.successor: Optional[subprocess.Popen[bytes]] = None
        assert self.process.stdout is not None
        word, pid = self.process.stdout.readline().split()
        assert word == b"ready"
        self.pid = int(pid)

    def state(self) -> str:
        """The kernel's letter; "" if the process has gone."""
        return state_of(self.pid)

    def is_held(self) -> bool:
        """Whether the command holds any process of the job still."""
        pids = (pid for pid, process in processes().items() if process.parent == self.process.pid)
        return any(state_of(pid) == "t" for pid in (self.pid, *pids))

    def tracer(self) -> int:
        """The process that traces the job; 0: none."""
        with suppress(OSError):
            return int(re.findall(r"TracerPid:\t(\d+)", Path(f"/proc/{self.pid}/status").read_text())[0])
        return 0

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Until the fault has happened, or can't as long as the command holds the process still."""
        while not is_so() and self.state() not in ("t", "Z", ""):
            time.sleep(0.001)

    def end(self) -> None:
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        if self.successor is not None:
            self.successor.kill()
            self.successor.wait()


# ---- the faults ----


def is_killed(job: Job) -> None:
    os.kill(job.pid, signal.SIGKILL)
    job.wait_until(lambda: job.state() == "Z")


def is_reaped(job: Job) -> None:
    """The kernel tells a tracer first that its process has ended: then the parent, which is this, hears of it later."""
    is_killed(job)
    job.process.poll()


def execs(job: Job) -> None:
    os.kill(job.pid, signal.SIGUSR1)
    job.wait_until(lambda: Path(f"/proc/{job.pid}/comm").read_text() == "sleep\n")


def forks(job: Job) -> None:
    os.kill(job.pid, signal.SIGUSR2)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    if children.exists():  # a kernel without it does not say
        job.wait_until(lambda: children.read_text() != "")


def stops(job: Job) -> None:
    os.kill(job.pid, signal.SIGSTOP)
    job.wait_until(lambda: job.state() == "T")


def migrates(job: Job) -> None:
    """Rank 0 goes to the other process, in the middle of whatever the command reads of it."""
    assert job.process.stdin is not None and job.process.stdout is not None
    stream = job.process.stdout.fileno()
    os.write(job.process.stdin.fileno(), b"x")
    job.wait_until(lambda: bool(select.select([stream], [], [], 0)[0]) or job.is_held())


def is_another(job: Job) -> None:
    """The pid is another program's: the kernel gives out pids in order, and root may say which comes next."""
    is_reaped(job)
    for _ in range(MOST_PIDS):
        with suppress(OSError):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(job.pid - 1))
        process = subprocess.Popen(["/bin/sleep", "600"])
        if process.pid == job.pid:
            job.successor = process
            return
        process.kill()
        process.wait()


IN_TARGET: dict[str, Callable[[Job], None]] = {
    "killed": is_killed,
    "reaped": is_reaped,
    "exec": execs,
    "fork": forks,
    "stopped": stops,
    "pid reused": is_another,
    "migrated away": migrates,
}
