"""Runs every oracle program once per test run, whatever the number of test workers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.host.controller import Controller, Debugger, DebuggerFailedError
from tests.support.host.plan import Answers, Plan
from tests.support.oracle.program import ARGUMENT, MPICH, RANKS, Program, copied, virtual
from tests.support.running import Job, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

CRASHED = "----- Backtrace -----"  # GDB prints its own as it crashes


@dataclass(frozen=True)
class Runs:
    """The answers about a program, from processes under MPICH and from virtual ranks."""

    debugger: Debugger
    shared: Shared

    def native(self, program: Program) -> Answers:
        """Each rank a process, under a debugger that knows nothing of us."""

        def run(folder: Path) -> None:
            executable = copied(program, MPICH, self.shared, folder)
            plan = replace(walking(program), prepare=program.stop_natively)
            try:
                Controller(self.debugger, folder).native([str(executable), ARGUMENT], RANKS, plan)
            except DebuggerFailedError as error:
                if CRASHED not in str(error):
                    raise
                (folder / "crashed").touch()

        folder = self.shared.made(f"{program}.native.gdb", run)
        if (folder / "crashed").exists():
            pytest.skip("this GDB itself crashes in processes, without ranklens: nothing is there to compare with")
        return Answers.load(folder / "answers")

    def live(self, program: Program) -> Answers:
        """All ranks in one process, to which the debugger attaches."""

        def run(folder: Path) -> Answers:
            job = self.held_job(program, folder)
            try:
                return Controller(self.debugger, folder).attached(
                    job.pid, replace(self._plan(program), walk=program.walk)
                )
            finally:
                job.close()

        return self._once(f"{program}.live", run)

    def core(self, program: Program) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            job = self.held_job(program, folder)
            try:
                command = ["gcore", "-o", str(folder / "core"), str(job.pid)]
                subprocess.run(command, check=True, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            finally:
                job.close()
            core = folder / f"core.{job.pid}"
            return Controller(self.debugger, folder).opened(core, built("rankrun").resolve(), self._plan(program))

        return self._once(f"{program}.core", run)

    def _once(self, name: str, run: Callable[[Path], object]) -> Answers:
        return Answers.load(self.shared.made(f"{name}.gdb", run) / "answers")

    def held_job(self, program: Program, folder: Path) -> Job:
        executable = copied(program, virtual(), self.shared, folder)
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
