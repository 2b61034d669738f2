"""Whatever happens to the target or to a command's files at any moment, it ends with a sentence or an answer.

Some moments, always the same ones; a failure names its own. A thousand tries of each fault at other moments, by hand:
.venv/bin/python -m tests.support.inspector.faults --tries 1000
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator

import pytest

from tests.support.inspector.faults import FAULTS, Driver, commands
from tests.support.inspector.faults_around import NEED_ROOT
from tests.support.inspector.killed_debugger import DEBUGGER_KILLED, GDB

TRIES = 2  # of each fault


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    faults = Driver(tmp_path_factory.mktemp("faults"))
    yield faults
    faults.end(faults.lasting)


@pytest.mark.parametrize("fault", FAULTS)
def test_at_any_moment(fault: str, driver: Driver) -> None:
    if fault in NEED_ROOT and os.geteuid() != 0:
        pytest.skip("only root can do this to a command")
    if fault == DEBUGGER_KILLED and shutil.which(GDB) is None:
        pytest.skip("GDB is not installed")
    chance = random.Random(fault)  # the same commands and moments in every run
    outcomes = [driver.try_at_chance(fault, command, chance) for command in chance.sample(commands(fault), TRIES)]
    assert [outcome for outcome in outcomes if outcome.wrong] == []
