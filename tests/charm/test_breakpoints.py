"""Breakpoints in ranks of stock AMPI, with and without the hook: hit in every rank, copied into none, sent nowhere.

The program's own sums tell whether an instruction was skipped: an int3 that is copied into a rank, or that comes along
with one, kills the process or leaves a wrong sum.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, METHODS, build, gated, turns_of
from tests.support.debuggers import find_gdb
from tests.support.running import ROOT

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),
]
RANKS = 3
TURNS = 3
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
PRIVATE int g_rank = -1, s_counter;
__attribute__((noinline)) int leaf(int n) {
  s_counter += n;
  return s_counter;
}
int main(int count, char **words) {
  int me, own = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  g_rank = me;
  for (int i = 1; i <= 3; i++) {
    int before = s_counter;
    own += leaf(i) - before;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("SUM %d %d\n", me, own);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
"""
HIT = re.compile(r"^(?:Rank \d hit |Thread .* hit )?Breakpoint 1(?:\.\d+)?, ", re.MULTILINE)


def _gdb(folder: Path, *commands: str, program: str = "") -> str:
    line = [str(find_gdb()), "-nx", "-q", "-batch"]
    line += ["-iex", "set debuginfod enabled off", "-iex", "set breakpoint pending on"]
    for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", *commands):
        line += ["-ex", one]
    return subprocess.run(
        [*line, *([program] if program else [])],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=400,
        check=False,
    ).stdout


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
@pytest.mark.parametrize("method", METHODS)
def test_a_breakpoint_from_before_the_start_is_hit_once_in_every_rank(
    method: str, with_hook: bool, tmp_path: Path
) -> None:
    build(tmp_path, method, "c", with_hook, SOURCE)
    stops = [command for _ in range(RANKS * TURNS) for command in ("print $_rank", "print n", "continue")]
    stops.insert(-1, "info breakpoints")
    said = _gdb(tmp_path, "break leaf", f"run +vp{RANKS}", *stops, program="./prog")
    by_rank = f"Breakpoint 1 already hit {RANKS * TURNS} times: {TURNS} times each by ranks 0-{RANKS - 1}"
    assert method == "none" or by_rank in said, said
    assert len(HIT.findall(said)) == RANKS * TURNS, said
    values = [int(one) for one in re.findall(r"^\$\d+ = (-?\d+)$", said, re.MULTILINE)]
    hits = sorted(zip(values[::2], values[1::2]))
    assert hits == [(rank, turn) for rank in range(RANKS) for turn in range(1, TURNS + 1)], said
    if method != "none":  # all add to one variable there, and leave it meanwhile
        assert sorted(re.findall(r"^SUM (\d) (\d+)$", said, re.MULTILINE)) == [(str(one), "6") for one in range(RANKS)]
    assert "exited normally" in said


@pytest.mark.parametrize("method", METHODS)
def test_a_condition_from_before_the_start_is_each_rank_s_own(method: str, tmp_path: Path) -> None:
    """Also where ranks' files are loaded, and the condition's names with them, before it is known whose they are."""
    build(tmp_path, method, "c", source=SOURCE)
    only = "$_rank == 2" if method == "none" else "g_rank == 2"
    stops = [command for _ in range(TURNS) for command in ("print $_rank", "print n", "info breakpoints", "continue")]
    said = _gdb(tmp_path, f"break leaf if {only}", f"run +vp{RANKS}", *stops, program="./prog")
    values = [int(one) for one in re.findall(r"^\$\d+ = (-?\d+)$", said, re.MULTILINE)]
    assert list(zip(values[::2], values[1::2])) == [(2, turn) for turn in range(1, TURNS + 1)], said
    assert "exited normally" in said and "ranklens failed" not in said, said
    assert not re.search(r"^1\.\d+ +n ", said, re.MULTILINE), "a place where it stops is shown to be disabled"


def _line_of(text: str, source: Path) -> int:
    return next(number for number, line in enumerate(source.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
@pytest.mark.parametrize("method", COPIES)
def test_one_gdb_follows_ranks_from_process_to_process(method: str, with_hook: bool, tmp_path: Path) -> None:
    """Both processes are inferiors: every rank's every hit is told, in whichever of them it is."""
    build(tmp_path, method, "gated.c", with_hook)
    line = _line_of("lost |=", tmp_path / "prog.gated.c")
    stop = 'printf "STOP %d %d %d %d\\n", $_inferior, $_rank, turn, g_rank'
    with gated(tmp_path, 4) as (job, processes):
        first, second = sorted(processes)
        said = _gdb(
            tmp_path,
            "set schedule-multiple on",
            f"attach {first}",
            "add-inferior",
            "inferior 2",
            f"attach {second}",
            f"break prog.gated.c:{line}",
            "shell touch go",
            *["continue", stop] * (4 * TURNS),
            "delete",
            "detach inferiors 1 2",
        )
        turns = turns_of(job)
    assert len(turns) == 4 * TURNS, said
    expected = sorted((1 + (pid == second), rank, turn, rank) for turn, rank, pid in turns)
    stops = [tuple(map(int, one)) for one in re.findall(r"^STOP (\d) (\d) (\d) (\d)$", said, re.MULTILINE)]
    assert sorted(stops) == expected, said


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
@pytest.mark.parametrize("method", COPIES)
def test_ranks_that_migrate_leave_their_breakpoints_behind(method: str, with_hook: bool, tmp_path: Path) -> None:
    """GDB has one of two processes; its ranks leave with a breakpoint in their code, come back, and leave again."""
    build(tmp_path, method, "gated.c", with_hook)
    line = _line_of("lost |=", tmp_path / "prog.gated.c")
    with gated(tmp_path, 4) as (job, processes):
        attached = min(processes)
        said = _gdb(
            tmp_path,
            f"attach {attached}",
            "rank events on",
            f"break prog.gated.c:{line}",
            "shell touch go",
            *["continue", 'printf "STOP %d %d %d\\n", $_rank, turn, g_rank'] * (2 * TURNS),
            "delete",
            "continue",
        )
        turns = turns_of(job)
    assert len(turns) == 4 * TURNS, said
    expected = sorted((rank, turn, rank) for turn, rank, pid in turns if pid == attached)
    stops = [tuple(map(int, one)) for one in re.findall(r"^STOP (\d) (\d) (\d)$", said, re.MULTILINE)]
    assert sorted(stops) == expected, said
    assert len(re.findall(r"is about to be packed", said)) >= 2, said
    assert len(re.findall(r"has arrived", said)) >= 2, said
