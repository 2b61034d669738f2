"""Jobs of turns.c, which begins when a test says so, and what it prints at its end whatever a debugger does."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.mpich import mpiexec
from tests.support.running import ROOT, Job, StartJob, built
from tests.support.sharing import Shared

SOURCE = ROOT / "tests" / "inspector" / "sources" / "turns.c"
RANKS, TURNS = 4, 6
SAID = r"^rank (\d+) is in process (\d+), (0x[0-9a-f]+) works$"
EXPECTED = [f"rank {rank} did {sum(range(TURNS)) + TURNS * rank}, level 978" for rank in range(RANKS)]


class Turns:
    """The program, built for a method or for MPICH, and jobs of it in a folder of their own."""

    def __init__(self, start_job: StartJob, shared: Shared, folder: Path) -> None:
        self._start, self._shared, self._folder = start_job, shared, folder

    def program(self, compiler: list[object]) -> Path:
        place = self._folder / "turns"
        self._shared.copied([*compiler, "-g", "-O0", SOURCE], place)
        return place

    def native(self) -> Job:
        program = self.program(["mpicc.mpich"])
        return self._start(*mpiexec(), "-n", RANKS, program, TURNS, self.go)

    def virtual(self, method: str, *options: object, more: tuple[object, ...] = ()) -> Job:
        own = ["-DOWN=__thread"] if method in ("tls", "tls-word") else []
        program = self.program([built("rankcc"), f"--method={method}", *own])
        words = [built("rankrun"), "-n", RANKS, "--method", method, *options]
        return self._start(*words, program, TURNS, self.go, *more)

    @property
    def go(self) -> Path:
        return self._folder / "go"

    def process_of(self, job: Job, rank: int) -> int:
        """The process of a rank, once all ranks wait."""
        return int(self._said(job)[rank][0])

    def address_of(self, job: Job, rank: int) -> int:
        """Where a rank has the function work(), once all ranks wait."""
        return int(self._said(job)[rank][1], 16)

    def _said(self, job: Job) -> dict[int, tuple[str, str]]:
        """By rank."""
        while len(found := re.findall(SAID, "\n".join(job.lines), re.MULTILINE)) < RANKS:
            job.wait_for("is in process")
        return {int(rank): (process, address) for rank, process, address in found}


def results(job: Job) -> list[str]:
    assert job.finish() == 0, job.stderr()
    return sorted(line for line in job.lines if " did " in line)
