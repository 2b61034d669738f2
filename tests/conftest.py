"""What every test may ask for: the built commands, and jobs that end with the test.

A job is started by `start_job` and is known to be ready by a line that it prints itself; nothing here waits for a time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.shell.signals import ENDING
from tests.support.debuggers import find_gdb
from tests.support.gdb.calls import skip_without_calls
from tests.support.host.indexed import write_starter
from tests.support.lldb.index import keep_index_in
from tests.support.running import ROOT, Job, StartJob, built
from tests.support.sharing import Shared


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Shared:
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if hasattr(request.config, "workerinput") else base) / "shared"
    root.mkdir(exist_ok=True)
    return Shared(root)


@pytest.fixture(scope="session", autouse=True)
def lldb_index(shared: Shared) -> None:
    keep_index_in(shared.root / "lldb-index")


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


@pytest.fixture(scope="session")
def calls(gdb: Path, shared: Shared) -> None:
    """For tests in which GDB calls functions: they are skipped where plain GDB can't."""
    skip_without_calls(gdb, shared)


CHANGES_OUTPUT = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "DEBUGINFOD_URLS")


def pytest_configure() -> None:
    """What tools write must not depend on who runs the tests; a test that is about one of these sets it."""
    for name in CHANGES_OUTPUT:
        os.environ.pop(name, None)
    os.environ["LC_ALL"] = "C.UTF-8"
    # Debuggers and commands start some thousand times: they share bytecode, that of the system's modules included.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "bytecode")


@pytest.fixture(autouse=True)
def no_width() -> None:
    """GNU readline, where something has loaded it, sets COLUMNS for commands, and `os.environ` does not show that."""
    for name in ("COLUMNS", "LINES"):
        if name not in os.environ:
            os.unsetenv(name)


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or leaves anything in the user's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Where a test calls a command in this process, which hears signals from then on: Ctrl-C is pytest's again."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


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
        RECORDED.update(tuple(map(str, cell)) for cell in cells if isinstance(cell, (list, tuple)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    from tests.methods import table

    if RECORDED and not hasattr(session.config, "workerinput"):
        table.update(RECORDED)
