"""An uncaught exception under stock AMPI: the report says what AMPI prints of it, and the user's line."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, WORKERS, build
from tests.support.cores import run_to_core
from tests.support.running import BIN

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
GUILTY = 2
SOURCE = """\
#include <mpi.h>
#include <vector>
static std::vector<int> cells(3);
__attribute__((noinline)) static int update(std::vector<int> &all, int which) {
  return all.at(which)++; /* update */
}
int main(int argc, char **argv) {
  int rank, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) sum = update(cells, 77);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return sum;
}
"""
LINE = next(number for number, line in enumerate(SOURCE.splitlines(), 1) if "/* update */" in line)
PRINTED = re.compile(r"Unhandled C\+\+ exception in user code: .*")


def test_the_report_says_what_was_thrown_and_where(tmp_path: Path) -> None:
    """Under pie: in a linker namespace the C++ library there prints it, and keeps nothing of it."""
    build(tmp_path, "pie", "cpp", source=SOURCE)
    done = run_to_core(tmp_path, "./prog", f"+vp{RANKS}", *WORKERS)
    (core,) = tmp_path.glob("core*")
    printed = PRINTED.search(done.stdout + done.stderr)
    assert printed is not None, done
    command = [str(BIN / "inspector"), "report", str(core), "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    (crash,) = found["crashes"]
    assert (crash["signal"], crash["rank"]) == ("SIGABRT", GUILTY)
    assert crash["place"] == f"update at prog.cpp:{LINE}"
    assert crash["message"] == printed[0]
