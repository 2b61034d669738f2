"""Builds programs with SimGrid's compilers and starts them under smpirun; hears from them where their variables are.

Takes what Debian's libsimgrid-dev installs, or the SimGrid under SIMGRID_HOME. A job is up once its rank 0 sleeps for
good: by then all other ranks have come to wait.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.errors import TargetError
from pieglobalsfind.jobs.processes import descendants, processes
from pieglobalsfind.targets.core import CoreTarget
from tests.support.running import Job, StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

HOME = Path(os.environ.get("SIMGRID_HOME", "/usr"))
for variable, folder in (("PATH", "bin"), ("CPATH", "include"), ("LIBRARY_PATH", "lib"), ("LD_LIBRARY_PATH", "lib")):
    if "SIMGRID_HOME" in os.environ:  # for smpirun, smpicc and what a program without MPI is compiled with
        os.environ[variable] = f"{HOME / folder}:{os.environ.get(variable, '')}".rstrip(":")
SMPIRUN = shutil.which("smpirun") or ""


def version() -> tuple[int, int]:
    """SimGrid's."""
    said = subprocess.run([SMPIRUN, "--version"], capture_output=True, text=True, timeout=60).stdout
    numbers = re.search(r"(\d+)\.(\d+)", said)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


needs_smpi = pytest.mark.skipif(not SMPIRUN, reason="SimGrid's smpirun is not installed (Debian: libsimgrid-dev)")
VERSION = version() if SMPIRUN else (0, 0)
COMPILERS = {".c": "smpicc", ".cpp": "smpicxx", ".f90": "smpif90"}
SOURCES = Path(__file__).resolve().parent / "sources"
FACTORIES = ("raw", "boost", "ucontext", "thread")


def lacks(factory: str) -> bool:
    """Whether SimGrid has no contexts of a kind: 4.0 has none of libc's any more."""
    return factory == "ucontext" and VERSION >= (4, 0)


PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node" suffix="" radical="0-{last}" speed="1Gf" bw="125MBps" lat="50us"/>
</platform>
"""


@dataclass(frozen=True)
class Truth:
    """What a rank says of one of its variables: where it is, and its value."""

    rank: int
    name: str
    address: int
    value: int


@dataclass(frozen=True)
class Running:
    """A job that stands still: the pid of the one process with all ranks, and what they have said."""

    job: Job
    pid: int
    told: tuple[Truth, ...]

    def variable(self, name: str) -> dict[int, Truth]:
        """By rank."""
        return {truth.rank: truth for truth in self.told if truth.name == name}


def built(shared: Shared, source: str, *options: str) -> Path:
    """The program of a source of ours, built once in a test run."""
    place = SOURCES / source
    return shared.compiled([COMPILERS[place.suffix], "-g", "-O0", place, *options], f"{place.stem}-{place.suffix[1:]}")


def platform(folder: Path, hosts: int) -> tuple[Path, Path]:
    """A platform of so many hosts, and the file that lists them, the last one first."""
    description, listed = folder / "platform.xml", folder / "hosts"
    description.write_text(PLATFORM.format(last=hosts - 1))
    listed.write_text("".join(f"node{one}\n" for one in reversed(range(hosts))))
    return description, listed


def command(folder: Path, ranks: int, program: Path, *options: str) -> list[str]:
    """How to start a program."""
    description, listed = platform(folder, ranks)
    words = [SMPIRUN, "-np", str(ranks), "-platform", str(description), "-hostfile", str(listed)]
    return [*words, "--log=root.thres:error", *options, str(program)]


def start(
    start_job: StartJob,
    folder: Path,
    ranks: int,
    program: Path,
    options: Sequence[str] = (),
    environment: Optional[dict[str, str]] = None,
) -> Running:
    """The program, once all of its ranks stand still."""
    job = start_job(*command(folder, ranks, program, *options), environment=environment)
    job.wait_for("ready")
    pid = wait_until(lambda: process_of(job), "smpirun has started no smpimain")
    wait_until(lambda: sleeps(pid), "rank 0 never came to sleep")
    return Running(job, pid, tuple(parse(job.lines)))


def sleeps(pid: int) -> bool:
    """Whether a thread of the process is in pause(2), system call 34 on x86-64."""
    return any((task / "syscall").read_text().startswith("34 ") for task in Path(f"/proc/{pid}/task").iterdir())


def process_of(job: Job) -> int:
    """The process that smpirun, a shell script, has started; 0 if there is none yet."""
    known = processes()
    return next((descendant for descendant in descendants(job.pid, known) if known[descendant].name == "smpimain"), 0)


def kernel_core(pid: int, folder: Path) -> Path:
    """A core file of a job that was started in `folder`, by the kernel, which ends the job for it."""
    if "/" in Path("/proc/sys/kernel/core_pattern").read_text() or not may_dump(pid):
        pytest.skip("the kernel writes core files elsewhere here")
    os.kill(pid, signal.SIGABRT)
    (found,) = wait_until(lambda: [path for path in folder.glob("core*") if is_whole(path)], "there is no core file")
    return found


def may_dump(pid: int) -> bool:
    """Whether the process may write core files, which it is allowed."""
    most = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
    resource.prlimit(pid, resource.RLIMIT_CORE, (most, most))
    return most != 0


def is_whole(core: Path) -> bool:
    try:
        return not CoreTarget(str(core)).cut_short
    except TargetError:
        return False  # its headers are not written yet


def parse(lines: Sequence[str]) -> list[Truth]:
    """What ranks have said; a Fortran program writes addresses without their sign of base."""
    said = [line.split() for line in lines if line.startswith("TRUTH ")]
    return [Truth(int(rank), name, int(address, 16), int(value)) for _, rank, name, address, value in said]
