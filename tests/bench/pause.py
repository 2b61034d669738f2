"""For how long a process stands still while its ranks are read at one moment."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING, Region
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from tests.bench.gdb_ranks import compile_source, job, rankrun
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

FEW, MANY = 8, 1_000
USED = 8 << 10  # bytes of stack that each rank uses
DATA = 1 << 20  # bytes of globals that each of the few ranks has
TURNS = 150
RSP = 7
SOURCE = f"""#include <mpi.h>
#include <stdio.h>
char data[{DATA}] = {{1}};
static void wait_for(int rank) {{
    volatile char room[{USED}];
    int word;
    room[0] = 1;
    MPI_Send(&rank, 1, MPI_INT, rank, 6, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    data[0] = room[0];
}}
int main(int argc, char **argv) {{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank < size - 1)
        wait_for(size - 1);
    for (int others = size - 1, word; others > 0; others--)
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (volatile int turn = 0;; turn++)
        ;
    return 0;
}}
"""


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "waits"
        compile_source(place / "waits.c", SOURCE, [str(BIN / "rankcc")], program)
        with job([*rankrun(FEW), str(program)]) as pid:
            few, with_data = paused(pid, False), paused(pid, True)
        with job([*rankrun(MANY), "--method", "none", str(program)]) as pid:
            many = paused(pid, False)
    return Result(
        "A pause",
        f"All ranks of a running job but one wait, each with {USED >> 10} KB of stack in use; the last one computes. "
        "From the interrupt of the first thread to the release of the last; registers, stacks and what tells of ranks "
        f"are copied. The best of {TURNS} pauses.",
        (
            Measurement(f"{FEW} ranks", 1000 * few, "ms", 1),
            Measurement(f"{FEW} ranks, and {DATA >> 20} MB of globals of each", 1000 * with_data, "ms"),
            Measurement(f"{MANY:,} ranks", 1000 * many, "ms", 5),
        ),
    )


def paused(pid: int, with_data: bool) -> float:
    """Seconds that the process stood still, the least of many pauses of which each has all stacks."""
    live = LiveTarget(pid)
    return min(at_one_moment([plan_for(live, with_data)], with_data, whole) for _ in range(TURNS))


def whole(targets: Sequence[PausedTarget]) -> float:
    (target,) = targets
    table = decode(target)
    contexts = Contexts(target, table)
    for rank in table.ranks:
        assert isinstance(rank.stack, Region)
        if rank.state != RUNNING:
            pointer = contexts.registers(rank)[RSP]
            assert len(target.read(pointer, rank.stack.end - pointer)) >= USED, rank
    return target.pause.seconds
