"""Breakpoints and watchpoints where stock AMPI has privatized nothing: ranks run the original's functions.

Each rank adds to the one variable in each turn, so that its value at each hit is how many hits there were before.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, build
from tests.support.debuggers import find_gdb, find_lldb
from tests.support.running import ROOT

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),
]
RANKS, TURNS = 3, 3
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
static __thread int small = 3;
int sum;
void add_turn(int rank)
{
  int amount = rank >= 0;
  sum += amount;
}
int main(int count, char **words) {
  int me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  small = me;
  for (int i = 1; i <= 3; i++) {
    add_turn(me);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("SUM %d\n", sum);
  fflush(stdout);
  MPI_Finalize();
  return small < 0;
}
"""
LINE = 1 + SOURCE.splitlines().index("  sum += amount;")
TOTAL = RANKS * TURNS


@pytest.fixture(scope="module", params=COPIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lost")
    build(made, request.param, "c", source=SOURCE)
    return made


def gdb(folder: Path, *commands: str) -> str:
    words = ["-iex", "set debuginfod enabled off", "-iex", "set breakpoint pending on"]
    for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", *commands):
        words += ["-ex", one]
    return run([str(find_gdb()), "-nx", "-q", "-batch", *words, "./prog"], folder)


def lldb(folder: Path, *commands: str) -> str:
    words = [word for one in (f"command script import {ROOT / 'lldbext'}", *commands) for word in ("-o", one)]
    return run([str(find_lldb()), "-x", "-b", *words, "--", "./prog", f"+vp{RANKS}"], folder)


def run(command: list[str], folder: Path) -> str:
    return subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=400,
        check=False,
    ).stdout


def values(said: str) -> list[int]:
    return [int(one) for one in re.findall(r"^\$\d+ = (-?\d+)$", said, re.MULTILINE)]


def test_gdb_stops_every_rank(folder: Path) -> None:
    stops = [command for _ in range(TOTAL) for command in ("print $_rank", "print rank", "print sum", "continue")]
    said = gdb(folder, f"break prog.c:{LINE}", f"run +vp{RANKS}", *stops)
    found = values(said)
    assert found[::3] == found[1::3] and sorted(found[::3]) == sorted(list(range(RANKS)) * TURNS), said
    assert found[2::3] == list(range(TOTAL)), said
    assert re.findall(r"^SUM (\d+)$", said, re.MULTILINE) == [str(TOTAL)] * RANKS and "exited normally" in said, said
    assert "location number not found" not in said, said


def test_gdb_stops_certain_ranks(folder: Path) -> None:
    stops = [command for _ in range(TURNS) for command in ("print $_rank", "print rank", "continue")]
    said = gdb(folder, f"rank break prog.c:{LINE} 1 if sum >= 0", f"run +vp{RANKS}", *stops)
    assert values(said) == [1] * 2 * TURNS and "exited normally" in said, said


def test_gdb_watches_the_variable_in_use(folder: Path) -> None:
    """Whichever rank writes to it; a watchpoint of one rank's is on the one variable, too."""
    stops = [command for _ in range(TOTAL) for command in ("print $_rank", "print sum", "continue")]
    first = (f"tbreak prog.c:{LINE}", f"run +vp{RANKS}", "rank watch sum 1", "continue")
    said = gdb(folder, *first, *stops)
    found = values(said)
    assert found[1::2][:TOTAL] == list(range(1, TOTAL + 1)), said
    assert sorted(found[::2][:TOTAL]) == sorted(list(range(RANKS)) * TURNS), said


def test_lldb_stops_every_rank(folder: Path) -> None:
    stops = [command for _ in range(TOTAL) for command in ("rank", "p sum", "p rank", "continue")]
    said = lldb(folder, f"breakpoint set -f prog.c -l {LINE}", "run", *stops)
    ranks = [int(one) for one in re.findall(r"^Rank (\d) is selected", said, re.MULTILINE)]
    shown = [int(one) for one in re.findall(r"^\(int\) (\d+)$", said, re.MULTILINE)]
    assert shown[::2] == list(range(TOTAL)) and shown[1::2] == ranks, said
    assert sorted(ranks) == sorted(list(range(RANKS)) * TURNS), said


def test_lldb_stops_certain_ranks(folder: Path) -> None:
    stops = [command for _ in range(TURNS) for command in ("rank", "p rank", "continue")]
    said = lldb(folder, f"rank break prog.c:{LINE} 1", "run", *stops)
    assert re.findall(r"^Rank (\d) is selected", said, re.MULTILINE) == ["1"] * TURNS, said
    assert re.findall(r"^\(int\) (\d+)$", said, re.MULTILINE) == ["1"] * TURNS, said


def test_lldb_watches_the_variable_in_use(folder: Path) -> None:
    first = (f"breakpoint set -o true -f prog.c -l {LINE}", "run", "watchpoint set variable sum", "continue")
    stops = [command for _ in range(4) for command in ("p sum", "continue")]
    said = lldb(folder, *first, *stops)
    assert re.findall(r"^\(int\) (\d+)$", said, re.MULTILINE) == ["1", "2", "3", "4"], said
