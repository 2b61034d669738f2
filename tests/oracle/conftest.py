"""Runs every oracle program once per test run, whatever the number of test workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.host.controller import Gdb
from tests.support.oracle.runs import Runs
from tests.support.sharing import Shared


@pytest.fixture(scope="session")
def runs(gdb: Path, shared: Shared) -> Runs:
    return Runs(Gdb(gdb), shared)
