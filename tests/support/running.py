"""What every test may ask for: the built commands, and jobs that end with the test.

A job is started by `start_job` and is known to be ready by a line that it prints itself; nothing here waits for a time.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.jobs.processes import descendants, processes
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
PROGRAMS = ROOT / "tests" / "programs"


def built(name: str) -> Path:
    """The path of one of the project's commands; `make setup` puts them there."""
    path = BIN / name
    if not path.exists():
        pytest.fail(f"{path} is missing: run `make setup`")
    return path


def hear_interrupts() -> None:
    """In a new process: a suite in the background, or below nohup, ignores signals, and what it starts would, too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


NICENESS = 10


class Job:
    """A running program of ours, its standard output read line by line."""

    def __init__(self, command: Sequence[str], cwd: Path, environment: Optional[dict[str, str]] = None) -> None:
        self.errors = (cwd / f"stderr.{time.monotonic_ns()}").open("w+")
        self.process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
            preexec_fn=hear_interrupts,
        )
        self.pid = self.process.pid
        self.lines: list[str] = []
        self._pending = b""

    def wait_for(self, text: str, times: int = 1, timeout: float = 60) -> str:
        """Return the line that contains `text` for the `times`th time; fails when the job ends or `timeout` s pass."""
        deadline = time.monotonic() + timeout
        seen = 0
        while True:
            for line in self._read_lines(deadline):
                if text in line:
                    seen += 1
                    if seen == times:
                        self._give_way()
                        return line

    def _give_way(self) -> None:
        """Now that it is ready: a rank that loops for a debugger would take half of the debugger's time.

        Where the kernel shares out time among sessions (autogroup), it is the session's niceness that counts.
        """
        with suppress(OSError):
            os.setpriority(os.PRIO_PGRP, self.pid, NICENESS)
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(str(NICENESS))

    def _read_lines(self, deadline: float) -> list[str]:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                pytest.fail(f"the job printed no such line in time; so far: {self.lines}\n{self.stderr()}")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                pytest.fail(f"the job ended early, status {self.process.wait()}: {self.lines}\n{self.stderr()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        self.lines.append(line.decode(errors="replace"))
        return self.lines[-1:]

    def wait_until_still(self) -> None:
        """Until rankrun says that no rank can continue: all are suspended then, also the one that printed last."""
        wait_until(lambda: "waits for a debugger" in self.stderr() or self.process.poll() is not None, self.stderr)
        assert self.process.poll() is None, self.stderr()

    def stderr(self) -> str:
        self.errors.flush()
        return Path(self.errors.name).read_text(errors="replace")

    def finish(self, timeout: float = 60) -> int:
        """Read the rest of the output, wait for the end, and return the exit status."""
        output, _ = self.process.communicate(timeout=timeout)
        self.lines += (self._pending + output).decode(errors="replace").splitlines()
        self._pending = b""
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            started = list(descendants(self.pid, processes()))  # under Open MPI each has its own process group
            os.killpg(self.pid, signal.SIGKILL)
            for pid in started:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.errors.close()


StartJob = Callable[..., Job]
