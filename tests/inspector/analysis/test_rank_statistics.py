"""Statistics over ranks, by `inspector globals` and GDB's `rank diff`; Python's own statistics are the oracle."""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path

import pytest

from tests.support.inspector.globals_by_name import run, values
from tests.support.inspector.ranks import StartRanks
from tests.support.running import ROOT, Job

RANKS = 12
PROGRAM = """
#include <math.h>
#include <mpi.h>
#include <stdio.h>
int iterations, same = 5;
double residual, odd;
int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    iterations = rank == 7 ? 900 : 100 + rank;
    residual = rank / 8.0;
    odd = rank == 3 ? NAN : rank * 1e300;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    return MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"""


@pytest.fixture
def job(start_ranks: StartRanks, tmp_path: Path) -> Job:
    source = tmp_path / "numbers.c"
    source.write_text(PROGRAM)
    return start_ranks(source, ranks=RANKS)


def test_figures_of_a_job(job: Job, gdb: Path) -> None:
    found = values(job.pid)
    numbers = [900 if rank == 7 else 100 + rank for rank in range(RANKS)]
    figures = found["iterations"]["statistics"]
    assert figures["mean"] == pytest.approx(statistics.fmean(numbers))
    assert figures["deviation"] == pytest.approx(statistics.pstdev(numbers))
    assert (figures["minimum"], figures["maximum"]) == (100, 900)
    assert [figures[name] for name in ("lowest", "highest", "beyond", "not_finite")] == ["0", "7", "7", ""]
    assert found["residual"]["statistics"]["beyond"] == ""
    assert found["odd"]["statistics"]["not_finite"] == "3"
    assert found["same"]["statistics"] is None
    mean, deviation = f"{statistics.fmean(numbers):.6g}", f"{statistics.pstdev(numbers):.6g}"
    sentence = (
        f"12 values, min 100 (rank 0), max 900 (rank 7), mean {mean}, standard deviation {deviation}; outliers: rank 7"
    )
    assert all(word in run(job.pid, "iterations").stdout.split() for word in ("values,", f"{mean},", "outliers:"))
    words = ["-nx", "-q", "-batch", "-p", str(job.pid), "-ex", f"source {ROOT / 'gdbext' / 'rank.py'}"]
    words += ["-ex", "rank diff iterations", "-ex", "rank diff iterations 0-3"]
    shown = subprocess.run([str(gdb), *words], capture_output=True, text=True, timeout=120, check=False).stdout
    assert f"0-11: {sentence}\n" in shown
    assert "0: 100\n1: 101\n2: 102\n3: 103\n" in shown, "few values are listed"
