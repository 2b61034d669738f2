"""A job whose program says what its ranks' variables are, held for a debugger; the last of its ranks runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, SOURCES, Places, hold, make_core
from tests.support.inspector.turns import Turns
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops


@pytest.fixture
def program(tmp_path: Path, shared: Shared, rankcc: Path) -> Path:
    return shared.copied([rankcc, "-g", "-O0", SOURCES / "places.c"], tmp_path / "places")


@pytest.fixture
def places(start_job: StartJob, rankrun: Path, program: Path) -> Places:
    held = hold(start_job(rankrun, "-n", RANKS, program))
    wait_until_it_loops(held.pid)
    return held


@pytest.fixture
def core(places: Places, tmp_path: Path) -> Path:
    return make_core(places.pid, tmp_path)


@pytest.fixture
def turns(start_job: StartJob, shared: Shared, tmp_path: Path) -> Turns:
    return Turns(start_job, shared, tmp_path)
