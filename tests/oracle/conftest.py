"""Runs every oracle program once per test run, whatever the number of test workers."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.conftest import Job, built
from tests.host.controller import Controller, Debugger, Gdb
from tests.host.plan import Answers, Plan
from tests.oracle.program import ARGUMENT, MPICH, RANKS, Program, build, virtual
from tests.waiting import wait_until_it_loops


def once(folder: Path, run: Callable[[Path], Answers]) -> Answers:
    """The answers of `run(folder)`, which only the first caller of all workers makes; fails as the first one did."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failure = folder / "failure"
        if failure.exists():
            pytest.fail(failure.read_text(), pytrace=False)
        if folder.exists():
            return Answers.load(folder / "answers")
        folder.mkdir()
        try:
            return run(folder)
        except BaseException as error:
            failure.write_text(f"{type(error).__name__}: {error}")
            raise


@dataclass(frozen=True)
class Runs:
    """The answers about a program, from processes under MPICH and from virtual ranks."""

    root: Path
    debugger: Debugger

    def native(self, program: Program) -> Answers:
        """Each rank a process, under a debugger that knows nothing of us."""

        def run(folder: Path) -> Answers:
            executable = build(program, MPICH, folder)
            plan = replace(walking(program), prepare=program.stop_natively)
            return Controller(self.debugger, folder).native([str(executable), ARGUMENT], RANKS, plan)

        return once(self.root / f"{program}.native", run)

    def live(self, program: Program) -> Answers:
        """All ranks in one process, to which the debugger attaches."""

        def run(folder: Path) -> Answers:
            job = self._held_job(program, folder)
            try:
                return Controller(self.debugger, folder).attached(
                    job.pid, replace(self._plan(program), walk=program.walk)
                )
            finally:
                job.close()

        return once(self.root / f"{program}.live", run)

    def core(self, program: Program) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            job = self._held_job(program, folder)
            try:
                command = ["gcore", "-o", str(folder / "core"), str(job.pid)]
                subprocess.run(command, check=True, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            finally:
                job.close()
            core = folder / f"core.{job.pid}"
            return Controller(self.debugger, folder).opened(core, built("rankrun").resolve(), self._plan(program))

        return once(self.root / f"{program}.core", run)

    def _held_job(self, program: Program, folder: Path) -> Job:
        executable = build(program, virtual(), folder)
        job = Job([str(built("rankrun")), "-n", str(RANKS), str(executable), ARGUMENT], folder)
        try:
            job.wait_for("holding")
            wait_until_it_loops(job.pid)
        except BaseException:
            job.close()
            raise
        return job

    def _plan(self, program: Program) -> Plan:
        source = f"source {self.debugger.extension}"
        return replace(walking(program), prepare=(source,), ranks=tuple(range(RANKS)), walk=())


def walking(program: Program) -> Plan:
    """All that is asked about a program; the last rank runs."""
    return Plan(prepare=(), queries=program.queries, walk=program.walk, walker=RANKS - 1)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, gdb: Path) -> Runs:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    root = shared / "oracle"
    root.mkdir(exist_ok=True)
    return Runs(root, Gdb(gdb))
