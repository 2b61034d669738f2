"""`inspector why-different`, `globals` and `stacks` of a core file, and `watch`, on a real SMPI job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inspector.terminal import PROMPT, Terminal, terminal
from tests.support.running import StartJob
from tests.support.running import built as command_of_ours
from tests.support.sharing import Shared
from tests.support.smpi.answers import asked
from tests.support.smpi.jobs import Running, built, kernel_core, needs_smpi, start

pytestmark = needs_smpi
RANKS = 4
VARIABLES = ("g_rank", "s_rank", "t_rank")
FILTER = "0x37"  # of core files (core(5)): also private pages of files, which hold the copies' code


@pytest.fixture
def running(start_job: StartJob, shared: Shared, tmp_path: Path) -> Running:
    return start(start_job, tmp_path, RANKS, built(shared, "truth.c"))


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as opened:
        opened.wait_for(PROMPT)
        yield opened


def test_why_two_ranks_differ(running: Running) -> None:
    """Rank 0 sleeps where the others have gone on to wait, and each has its own variables."""
    found = asked("why-different", 0, 2, running.pid)
    assert [one["function"] for one in found["shared"]] == ["main", "below", "below"]
    assert [one["function"] for one in found["apart"][1]] == ["below", "MPI_Recv"]
    values = {one["name"]: [int(value) for value in one["values"]] for one in found["variables"]}
    told = {name: running.variable(name) for name in VARIABLES}
    assert {name: values[name] for name in VARIABLES} == {
        name: [ranks[0].value, ranks[2].value] for name, ranks in told.items()
    }


def test_a_core_file_with_the_copies_code(running: Running, tmp_path: Path) -> None:
    Path(f"/proc/{running.pid}/coredump_filter").write_text(FILTER)
    core = kernel_core(running.pid, tmp_path)
    found = {
        one["name"]: {group["ranks"]: group["value"] for group in one["groups"]}
        for one in asked("globals", core)["globals"]
    }
    for name in VARIABLES:
        assert found[name] == {str(rank): str(truth.value) for rank, truth in running.variable(name).items()}
    (waiting,) = asked("stacks", core, "--rank", "1-3")["stacks"]
    assert (waiting["ranks"], [one["function"] for one in waiting["calls"]]) == (
        "1-3",
        ["main", "below", "below", "below", "MPI_Recv"],
    )


def test_watch(running: Running, screen: Terminal) -> None:
    screen.command(command_of_ours("inspector"), "watch", running.pid, "--every", "200ms")
    shown = screen.wait_for(
        f"process {running.pid}: {RANKS} of {RANKS} ranks", "ranks: 4 of 4 rows", "below at truth.c:"
    )
    assert len(re.findall(r"^ *[1-3] +blocked +MPI_Recv from 0, tag 9 ", shown, re.MULTILINE)) == RANKS - 1
    screen.keys("3")
    screen.wait_for("g_rank", "0: 0; 1: 1; 2: 2; 3: 3")
    screen.keys("q")
    screen.wait_for_prompt()
