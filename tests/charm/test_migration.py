"""Ranks that have migrated between two processes three times: each process tells its own, by their own numbers.

Both processes then hold freed structures of threads that have left.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, BOTH, build, gated, launched, turns_of, wait_until_asleep
from tests.support.debuggers import find_gdb
from tests.support.running import ROOT

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 6


METHODS = ("pie", BOTH)


@pytest.fixture(scope="module", params=METHODS)
def processes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, dict[int, str]]]:
    """By process, the address of each of its ranks' `g_rank`, which is thread-local with both flags."""
    folder = tmp_path_factory.mktemp("migration")
    build(folder, request.param, "migrating.c")
    with launched(folder, RANKS, "+balancer", "RotateLB") as (_, found):
        wait_until_asleep(next(pid for pid, ranks in found.items() if 0 in ranks))
        yield found


def _run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_rank_is_found_where_it_is_and_nowhere_else(processes: dict[int, dict[int, str]]) -> None:
    assert len(processes) == 2
    for pid, ranks in processes.items():
        told = json.loads(_run("inspector", "ranks", str(pid), "--json"))["ranks"]
        assert sorted(one["rank"] for one in told) == sorted(ranks)
        waiting = {one["state"] for one in told if one["rank"]}
        if 0 in ranks:  # which sleeps, and keeps those from their element that the barrier has let go on
            assert waiting <= {"ready", "blocked"}
        else:
            assert waiting == {"blocked"}
        assert all(one["state"] == "running" for one in told if one["rank"] == 0)
        assert len({one["processing_element"] for one in told if one["rank"]}) == 1
        for rank, address in ranks.items():
            assert re.match(
                rf"{address}  rank {rank}  (data|tls)  ", _run("pieglobalsfind", "--pid", str(pid), address)
            )


def test_stacks_of_ranks_that_have_arrived(processes: dict[int, dict[int, str]]) -> None:
    for pid, ranks in processes.items():
        found = json.loads(_run("inspector", "stacks", str(pid), "--json"))
        for stack in found["stacks"]:
            assert "AMPI_Main" in [one["function"] for one in stack["calls"]]
        assert len(ranks) >= len(found["stacks"]) > 0


@pytest.mark.parametrize("method", METHODS)
def test_one_gdb_has_both_processes_as_inferiors(method: str, tmp_path: Path) -> None:
    """Every command spans the processes that are attached; the job ends well once GDB has let go."""
    build(tmp_path, method, "gated.c")
    with gated(tmp_path, 4) as (job, found):
        first, second = sorted(found)
        commands = [f"source {ROOT / 'gdbext' / 'rank.py'}", f"attach {first}", "rank print g_rank", "add-inferior"]
        commands += ["inferior 2", f"attach {second}", "rank print g_rank", "inferior 1", "rank print g_rank"]
        line = [str(find_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off"]
        for command in commands:
            line += ["-ex", command]
        said = subprocess.run(
            line, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, check=False
        ).stdout
        (tmp_path / "go").touch()
        turns = turns_of(job)
    values = re.findall(r"^(\d): (\d)$", said, re.MULTILINE)
    everybody = sorted(found[first] | found[second])
    spans = [sorted(found[first]), everybody, everybody]
    assert values == [(str(rank), str(rank)) for ranks in spans for rank in ranks], said
    assert len(turns) == 12
