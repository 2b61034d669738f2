"""The program that says where its variables are, jobs and core files of it, and an LLDB to ask about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.places import RANKS, Places, compile_program, hold, make_core
from tests.support.lldb.session import Session
from tests.support.running import StartJob


@pytest.fixture(scope="session")
def lldb() -> Path:
    return find_lldb()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("places"), "places.c")


@pytest.fixture
def session(lldb: Path, tmp_path: Path) -> Session:
    return Session(lldb, tmp_path)


@pytest.fixture
def places(start_job: StartJob, rankrun: Path, program: Path) -> Places:
    """A job that is held for a debugger: the last rank runs, the others wait in MPI_Recv."""
    return hold(start_job(rankrun, "-n", RANKS, program))


@pytest.fixture
def core(places: Places, tmp_path: Path) -> Path:
    """A core file of the held job."""
    return make_core(places.pid, tmp_path)
