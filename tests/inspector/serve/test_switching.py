"""A debugger that comes, or presses Ctrl-C, while the runtime switches its rank: it is shown the rank all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, Places
from tests.support.rsp import BASE, is_stopped, served
from tests.support.waiting import wait_until

RUNS = RANKS - 1
# The command `inspector`, to which two of three moments seem to lie amid a switch of every rank that runs.
SWITCHING = """
import itertools
from unittest.mock import patch
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.stacks.running_registers import RunningRegisters
from ranklens_inspector.cli import main

numbers, registers = itertools.count(), RunningRegisters.registers

def sometimes(self, rank):
    if not hasattr(self, "number"):
        self.number = next(numbers)
    if self.number % 3 < 2:
        raise RanklensError("the rank is being switched")
    return registers(self, rank)

with patch.object(RunningRegisters, "registers", sometimes):
    raise SystemExit(main())
"""
TIMES = 3


@pytest.fixture
def inspector(tmp_path: Path) -> list[object]:
    script = tmp_path / "switching.py"
    script.write_text(SWITCHING)
    return [sys.executable, script]


@pytest.mark.parametrize("option", [(), ("--control",)], ids=["looks", "controls"])
def test_one_rank(option: tuple[str, ...], places: Places, inspector: list[object]) -> None:
    thread = f"p{BASE + RUNS:x}.{BASE + RUNS:x}"
    with served(places.pid, "--rank", RUNS, *option, inspector=inspector) as client:
        client.start()
        assert client.ask("?") == f"T05thread:{thread};"
        for _ in range(TIMES):
            assert client.integer(places.owned[RUNS, "calls"].address) == places.owned[RUNS, "calls"].value
            client.send("vCont;c")
            wait_until(lambda: not is_stopped(places.pid) or bool(option), "the job does not go on")
            client.interrupt()
            assert client.reply() == f"T02thread:{thread};"


@pytest.mark.parametrize("option", ["--all", "--attach"])
def test_several_ranks(option: str, places: Places, inspector: list[object]) -> None:
    """One that is to be attached to, or one of all: it is not left out."""
    thread = f"p{BASE + RUNS:x}.{BASE + RUNS:x}"
    with served(places.pid, option, inspector=inspector) as client:
        client.start()
        client.ask("?")
        if option == "--all":
            assert client.ask(f"Hg{thread}") == "OK"
        else:
            assert client.attach(RUNS) == f"T05thread:{thread};"
        assert client.integer(places.owned[RUNS, "calls"].address) == places.owned[RUNS, "calls"].value
