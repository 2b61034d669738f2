"""C++ exceptions and backtrace() in ranks of `-pieglobals`, before and after they have moved to another process."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, BOTH, COPIES, build

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
TURNS = 3
DEPTH = 5
SOURCE = r"""
#include <execinfo.h>
#include <mpi.h>
#include <stdexcept>
#include <stdio.h>
#include <unistd.h>
PRIVATE int g_rank = -1;
__attribute__((noinline)) int deep(int left) {
  void *frames[64];
  if (left == 0) {
    printf("DEPTH %d %d\n", g_rank, backtrace(frames, 64));
    throw std::runtime_error("a rank's own");
  }
  return deep(left - 1) + 1;
}
int main(int count, char **words) {
  MPI_Info hints;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  for (int turn = 0; turn < 3; turn++) {
    try {
      deep(5);
    } catch (const std::exception &caught) {
      printf("CAUGHT %d %d %s\n", g_rank, (int)getpid(), caught.what());
      fflush(stdout);
    }
    AMPI_Migrate(hints);
  }
  MPI_Finalize();
  fflush(stdout);
  _exit(0);
}
"""


# With both flags AMPI puts the thread-local variable where the rank's outermost function returns to: backtrace(), which
# goes so far, crashes, with and without the module.
WITHOUT_BACKTRACE = SOURCE.replace("backtrace(frames, 64)", "0")


def _run(folder: Path, wish: str) -> subprocess.CompletedProcess[str]:
    command = ["./charmrun", "++local", "+p2", "./prog", f"+vp{RANKS}", "+balancer", "RotateLB"]
    environment = dict(os.environ, RANKDEBUG=wish)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=environment)


@pytest.fixture(scope="module", params=COPIES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A method, and the folder of the program."""
    made = tmp_path_factory.mktemp("exceptions")
    source = WITHOUT_BACKTRACE if request.param == BOTH else SOURCE
    build(made, request.param, "cpp", with_hook=True, source=source)
    return request.param, made


def test_they_are_caught_wherever_the_rank_is(program: tuple[str, Path]) -> None:
    method, folder = program
    said = _run(folder, "exceptions").stdout
    caught = re.findall(r"^CAUGHT (\d+) (\d+) a rank's own$", said, re.MULTILINE)
    assert sorted(int(rank) for rank, _ in caught) == sorted(list(range(RANKS)) * TURNS), said
    assert all(len({pid for number, pid in caught if int(number) == rank}) == 2 for rank in range(RANKS))
    depths = [int(depth) for depth in re.findall(r"^DEPTH \d+ (\d+)$", said, re.MULTILINE)]
    assert len(depths) == RANKS * TURNS
    if method != BOTH:
        assert min(depths) > DEPTH + 2  # deep() six times, main and what called it


def test_without_being_asked_the_module_changes_nothing(program: tuple[str, Path]) -> None:
    said = _run(program[1], "")
    assert "CAUGHT" not in said.stdout
    assert "Unhandled C++ exception" in said.stdout + said.stderr
