"""What every test may ask for: the built commands, and jobs that end with the test.

A job is started by `start_job` and is known to be ready by a line that it prints itself; nothing here waits for a time.
"""

from __future__ import annotations

import compileall
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.ending import TOLD_BY
from tests.host.indexed import write_starter
from tests.sharing import Shared
from tests.support.debuggers import find_gdb
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PACKAGES = ("pieglobalsfind", "gdbext", "lldbext", "inspector")
PROGRAMS = ROOT / "tests" / "programs"


def built(name: str) -> Path:
    """The path of one of the project's commands; `make setup` puts them there."""
    path = BIN / name
    if not path.exists():
        pytest.fail(f"{path} is missing: run `make setup`")
    return path


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Shared:
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if hasattr(request.config, "workerinput") else base) / "shared"
    root.mkdir(exist_ok=True)
    return Shared(root)


@pytest.fixture(scope="session")
def rankrun() -> Path:
    return built("rankrun")


@pytest.fixture(scope="session")
def rankcc() -> Path:
    return built("rankcc")


@pytest.fixture(scope="session")
def rankcxx() -> Path:
    return built("rankcxx")


@pytest.fixture(scope="session")
def rankfort() -> Path:
    return built("rankfort")


@pytest.fixture(scope="session")
def pieglobalsfind() -> Path:
    return built("pieglobalsfind")


@pytest.fixture(scope="session")
def inspector() -> Path:
    return built("inspector")


@pytest.fixture(scope="session")
def gdb(shared: Shared) -> Path:
    return shared.made("gdb", lambda folder: write_starter(find_gdb(), folder)) / "gdb"


CHANGES_OUTPUT = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "DEBUGINFOD_URLS")


def pytest_configure() -> None:
    """What tools write must not depend on who runs the tests; a test that is about one of these sets it."""
    for name in CHANGES_OUTPUT:
        os.environ.pop(name, None)
    os.environ["LC_ALL"] = "C.UTF-8"


def pytest_sessionstart(session: pytest.Session) -> None:
    """The commands and both debuggers are started a thousand times: that none compiles our modules again.

    Where PYTHONDONTWRITEBYTECODE is set, each of them would.
    """
    if not hasattr(session.config, "workerinput"):
        for package in PACKAGES:
            compileall.compile_dir(ROOT / package, quiet=2)


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or leaves anything in the user's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Where a test calls a command in this process, which hears signals from then on: Ctrl-C is pytest's again."""
    before = {number: signal.getsignal(number) for number in TOLD_BY}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def hear_interrupts() -> None:
    """In a new process: a suite that runs in the background of a shell ignores Ctrl-C, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
        """Until rankrun itself says that no rank can go on: all are suspended then, also the one that printed last."""
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
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.errors.close()


StartJob = Callable[..., Job]


@pytest.fixture
def start_job(tmp_path: Path) -> Iterator[StartJob]:
    """Start a command as a `Job`; every one is ended with the test."""
    jobs: list[Job] = []

    def start(*command: object, environment: Optional[dict[str, str]] = None) -> Job:
        jobs.append(Job([str(word) for word in command], tmp_path, environment))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


# ---- what the tests of tests/methods record for docs/methods.md ----

RECORDED: set[tuple[str, ...]] = set()  # cells of tests.methods.table


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called for every test, whichever process ran it."""
    if report.when == "call" and report.passed:
        cells = (value for name, value in report.user_properties if name == "methods cell")
        RECORDED.update(tuple(map(str, one)) for one in cells if isinstance(one, (list, tuple)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    from tests.methods import table

    if RECORDED and not hasattr(session.config, "workerinput"):
        table.update(RECORDED)
