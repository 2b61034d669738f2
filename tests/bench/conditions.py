"""What a breakpoint's condition costs at each hit: in a process under plain GDB, and in 64 ranks that hit in turn."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.gdb_ranks import bytecode, compile_source, processor_seconds, rankrun, sourced
from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_gdb
from tests.support.running import BIN

RANKS = 64
TURNS = 200
REPEAT = 3
TIMEOUT = 300
PROGRAM = f"""
#ifdef ALONE
#define MPI_Init(count, words)
#define MPI_Comm_rank(communicator, rank)
#define MPI_Barrier(communicator)
#define MPI_Finalize()
#define TURNS {RANKS * TURNS}
#else
#include <mpi.h>
#define TURNS {TURNS}
#endif
struct domain {{
    int cycle;
}};
int my_rank;
__attribute__((noinline)) static void advance(struct domain *domain, int turn) {{
    domain->cycle = turn;
}}
int main(int argc, char **argv) {{
    struct domain domain;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    for (int turn = 0; turn < TURNS; turn++) {{
        advance(&domain, turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }}
    MPI_Finalize();
    return 0;
}}
"""


def run() -> Result:
    """Measure conditions that are never true."""
    with tempfile.TemporaryDirectory() as folder:
        ranks, process = Path(folder) / "ranks", Path(folder) / "process"
        compile_source(Path(folder) / "ranks.c", PROGRAM, [str(BIN / "rankcc")], ranks)
        compile_source(Path(folder) / "process.c", PROGRAM, ["gcc", "-DALONE"], process)
        job, loaded = [*rankrun(RANKS), str(ranks)], sourced()
        plain = per_hit([str(process)], (), "turn < 0")
        local = per_hit(job, loaded, "turn < 0")
        several = per_hit(job, loaded, "my_rank == 7 && domain->cycle < -1")
        number = per_hit(job, loaded, "$_rank == 7 && turn < 0")
    return Result(
        "Conditions of breakpoints",
        f"{RANKS} ranks of one process come to a breakpoint in turn, {RANKS * TURNS:,} times in all; its condition is "
        f"false each time. Processor time of GDB and the job, beyond the same run without a breakpoint, for one hit; "
        f"the best of {REPEAT}. Plain GDB debugs one process, which comes there as often.",
        (
            Measurement("a process, plain GDB, `turn < 0`", plain * 1e3, "ms"),
            Measurement("ranks, `turn < 0`", local * 1e3, "ms"),
            Measurement("relative to a process", local / plain, "x", 3.0),
            Measurement(
                "ranks, `my_rank == 7 && domain->cycle < -1`, relative to a process", several / plain, "x", 3.0
            ),
            Measurement("ranks, `$_rank == 7 && turn < 0`, relative to a process", number / plain, "x", 3.0),
        ),
    )


def per_hit(program: Sequence[str], settings: Sequence[str], condition: str) -> float:
    """Processor seconds."""
    bare = min(cost(program, settings) for _ in range(REPEAT))
    return (min(cost(program, settings, f"break advance if {condition}") for _ in range(REPEAT)) - bare) / (
        RANKS * TURNS
    )


def cost(program: Sequence[str], settings: Sequence[str], *commands: str) -> float:
    """Processor seconds of a run to the end; raises `RuntimeError` where it does not come there."""
    words = [
        str(find_gdb()),
        "-nx",
        "-q",
        "-batch",
        "-iex",
        "set breakpoint pending on",
        "-iex",
        "set debuginfod enabled off",
    ]
    words += [word for command in (*settings, *commands, "run") for word in ("-ex", command)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode()
    before = processor_seconds()
    done = subprocess.run(
        [*words, "--args", *program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    if "exited normally" not in done.stdout:
        raise RuntimeError(f"{program[0]} did not run to its end: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return processor_seconds() - before
