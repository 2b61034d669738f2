"""Starts jobs, runs a debugger on them, and collects its answers.

Takes a debugger (`Gdb`; another one needs the same three command lines), a plan and a target.
Never leaves a process behind, and never reads a debugger's output for anything but an error message.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol

from tests.support.host.meeting import Meeting
from tests.support.host.plan import PLAN_VARIABLE, Answers, Plan
from tests.support.mpich import mpiexec
from tests.support.running import ROOT

TIMEOUT = 120.0  # seconds
GRACE = 10.0
"""Seconds that a job is given to end by itself once its work is done."""


class DebuggerFailedError(Exception):
    """The debugger ended without an answer for every rank; the message is what it wrote."""


def has_ended(job: subprocess.Popen[bytes]) -> bool:
    """Whether a job ends by itself in good time."""
    try:
        job.wait(GRACE)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_job(job: subprocess.Popen[bytes]) -> None:
    """Wait for a job that is about to end; end it, and what it started, when it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if has_ended(job):
            return
        os.killpg(job.pid, number)
    job.wait()


class Debugger(Protocol):
    """How a debugger is started so that it carries out the plan of its environment and ends."""

    @property
    def extension(self) -> Path: ...

    def launch(self, program: Sequence[str]) -> list[str]: ...

    def attach(self, pid: int) -> list[str]: ...

    def open_core(self, core: Path, executable: Path) -> list[str]: ...


@dataclass(frozen=True)
class Gdb:
    """GDB in batch mode, without the user's own settings."""

    path: Path
    extension: Path = ROOT / "gdbext" / "rank.py"
    script: Path = ROOT / "tests" / "support" / "host" / "in_gdb.py"

    def _start(self) -> list[str]:
        return [str(self.path), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off"]

    def launch(self, program: Sequence[str]) -> list[str]:
        return [*self._start(), "-x", str(self.script), "--args", *program]

    def attach(self, pid: int) -> list[str]:
        return [*self._start(), "-p", str(pid), "-x", str(self.script)]

    def open_core(self, core: Path, executable: Path) -> list[str]:
        return [*self._start(), str(executable), str(core), "-x", str(self.script)]


@dataclass(frozen=True)
class Controller:
    """Runs a debugger, once; its files and logs go to `directory`, which must be this run's own.

    After `timeout` seconds it is taken to hang.
    """

    debugger: Debugger
    directory: Path
    timeout: float = TIMEOUT

    @property
    def _answers(self) -> Path:
        return self.directory / "answers"

    def native(self, program: Sequence[str], processes: int, plan: Plan) -> Answers:
        """Run a program under MPICH, each process in a debugger of its own, and ask every process."""
        command = [*mpiexec(), "-n", str(processes), *self.debugger.launch(program)]
        log = self.directory / "native.log"
        with Meeting() as meeting, log.open("wb") as output:
            environment = self._environment(replace(plan, meeting=meeting.name))
            job = self._start(command, environment, output)
            try:
                complete = meeting.wait_for(processes, lambda: job.poll() is None, self.timeout)
            finally:
                meeting.end()
                end_job(job)
        if not complete:
            raise DebuggerFailedError(f"{' '.join(command)}\n{log.read_text(errors='replace')}")
        return Answers.load(self._answers)

    def attached(self, pid: int, plan: Plan) -> Answers:
        """Attach to a job of virtual ranks, ask about each of the plan's ranks, and detach."""
        return self._run(self.debugger.attach(pid), plan)

    def opened(self, core: Path, executable: Path, plan: Plan) -> Answers:
        """Open a core file of a job of virtual ranks, and ask about each of the plan's ranks."""
        return self._run(self.debugger.open_core(core, executable), plan)

    def _environment(self, plan: Plan) -> dict[str, str]:
        self._answers.mkdir()
        path = self.directory / "plan.json"
        replace(plan, answers=str(self._answers)).save(path)
        cache = str(self.directory / "cache")
        return {**os.environ, PLAN_VARIABLE: str(path), "XDG_CACHE_HOME": cache, "LC_ALL": "C.UTF-8"}

    def _start(self, command: Sequence[str], environment: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _run(self, command: Sequence[str], plan: Plan) -> Answers:
        log = self.directory / "debugger.log"
        with log.open("wb") as output:
            job = self._start(command, self._environment(plan), output)
            try:
                status = job.wait(self.timeout)
            finally:
                end_job(job)
        answers = Answers.load(self._answers)
        if status != 0 or not answers.ranks >= set(plan.ranks):
            raise DebuggerFailedError(f"{' '.join(command)}: status {status}\n{log.read_text(errors='replace')}")
        return answers
