"""Heaps that grow after ranks have become processes: what one rank allocates, others read and write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.running import built

RANKS = 40
SOURCE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { SIZE = 1 << 20 };
int rank, size;
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *sent = malloc(SIZE), *received = malloc(SIZE);
    memset(sent, rank + 1, SIZE);
    MPI_Sendrecv(sent, SIZE, MPI_CHAR, (rank + 1) % size, 0, received, SIZE, MPI_CHAR, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int at = 0; at < SIZE; at++)
        wrong += received[at] != (rank + size - 1) % size + 1;
    printf("rank %d: %d wrong\\n", rank, wrong);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("method", ["pie", "tpsl", "pipthread", "pipprocess"])
def test_what_a_rank_allocates_can_be_sent(method: str, tmp_path: Path) -> None:
    (tmp_path / "ring.c").write_text(SOURCE)
    program = tmp_path / "ring"
    compiler = [str(built("rankcc")), f"--method={method}", "-g", str(tmp_path / "ring.c"), "-o", str(program)]
    subprocess.run(compiler, check=True, timeout=60)
    ranks = 12 if method.startswith("pip") else RANKS  # namespaces are few
    command = [str(built("rankrun")), "-n", str(ranks), "--method", method, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"rank {rank}: 0 wrong" for rank in range(ranks))
