"""Jobs of the program that has every kind of variable, under each method, and core files of them."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from tests.methods.matrix import BYTE_COPIES, IS_PROCESS
from tests.support.gdb.places import make_core
from tests.support.running import PROGRAMS, Job, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

SHOWN = re.compile(r"rank (\d+) (\w+) 0x([0-9A-Fa-f]+) (-?\d+)$")
RANKS = 3


@dataclass(frozen=True)
class Truth:
    """What a rank's own code says of a variable."""

    address: int
    value: int


@dataclass
class Held:
    """A job that stands still but for its running rank. `truth`: by rank and variable."""

    method: str
    job: Job
    folder: Path
    running: Optional[int]
    truth: dict[int, dict[str, Truth]]
    cores: dict[int, Path] = field(default_factory=dict)

    def process_of(self, rank: int) -> int:
        """The process to look at for a rank: its own, where ranks are processes."""
        if self.method not in IS_PROCESS:
            return self.job.pid
        children = Path(f"/proc/{self.job.pid}/task/{self.job.pid}/children").read_text().split()
        return int(children[rank])  # started in the order of ranks

    def core_of(self, rank: int) -> Path:
        process = self.process_of(rank)
        if process not in self.cores:
            self.cores[process] = make_core(process, self.folder)
            os.kill(process, signal.SIGSTOP)  # the rank that loops takes no processor while its core file is looked at
        return self.cores[process]

    def by_process(self) -> dict[int, list[int]]:
        """The ranks that each process has to be asked about."""
        found: dict[int, list[int]] = {}
        for rank in self.truth:
            found.setdefault(self.process_of(rank), []).append(rank)
        return found


def compile_kinds(method: str, folder: Path, shared: Shared, *more: str) -> Path:
    """The C++ program for a method; byte copies refuse its thread-local variable."""
    options = ["-DWITHOUT_THREAD_LOCAL"] if method in BYTE_COPIES and not more else list(more)
    source = PROGRAMS / "kinds" / "kinds.cpp"
    command = [built("rankcxx"), f"--method={method}", "-g", "-O1", "-std=c++17", *options, source]
    return shared.copied(command, folder / f"kinds.{method}")


def compile_common(method: str, folder: Path, shared: Shared) -> Path:
    source = PROGRAMS / "kinds" / "common.f90"
    command = [built("rankfort"), f"--method={method}", "-g", "-O1", source]
    return shared.copied(command, folder / f"common.{method}")


def hold(start_job: StartJob, method: str, program: Path, *arguments: str) -> Held:
    job = start_job(built("rankrun"), "-n", RANKS, "--method", method, program, *arguments)
    job.wait_for("ready")
    truth: dict[int, dict[str, Truth]] = {}
    while len(truth) < RANKS:  # other ranks' lines may come behind: each has its own buffer
        for line in job.lines:
            match = SHOWN.match(line.strip())
            if match:
                place = truth.setdefault(int(match[1]), {})
                place[match[2]] = Truth(int(match[3], 16), int(match[4]))
        if len(truth) < RANKS:
            job.wait_for("rank ")
    held = Held(method, job, Path(program).parent, 0 if "spin" in arguments else None, truth)
    if held.running is None:
        job.wait_until_still()
    else:
        wait_until_it_loops(held.process_of(held.running))
    return held
