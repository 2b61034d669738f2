"""Whatever happens to the target or to a command's files at any moment, it ends with a sentence or an answer.

Some moments, always the same ones; a failure names its own. A thousand tries of each fault at other moments, by hand:
.venv/bin/python -m tests.support.inspector.faults --tries 1000
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.support.inspector.faults import COMMANDS, FAULTS, Driver

TRIES = 2  # of each fault


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    yield Driver(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("fault", FAULTS)
def test_at_any_moment(fault: str, driver: Driver) -> None:
    chance = random.Random(fault)  # the same commands and moments in every run
    outcomes = [driver.try_at_chance(fault, command, chance) for command in chance.sample(COMMANDS, TRIES)]
    assert [outcome for outcome in outcomes if outcome.wrong] == []
