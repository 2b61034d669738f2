"""What commands take of large jobs: 1,000 ranks of a program of 50 MB, its core file, and a job of 64 processes.

Beside plain GDB on the same process and the same core file.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Optional

from tests.bench.gdb_ranks import compile_source, job, rankrun
from tests.bench.inspector import measured
from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_gdb
from tests.support.running import BIN

RANKS, SIZE, APART = 1_000, 50 << 20, 4 << 20
PROCESSES = 64
COMMANDS = ("stacks", "globals", "pointers", "report")
LIMIT = 200  # MB beyond the interpreter
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
SOURCE = f"""#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int my_rank, ranks;
char bulk[{SIZE}];
int main(int argc, char **argv) {{
    int word, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int at = 0; at < {SIZE}; at += {APART})
        bulk[at] = my_rank % 100;
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank < ranks - 1)
        MPI_Recv(&word, 1, MPI_INT, my_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < 2 * ranks; turn++)
        MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}}
"""


def run() -> Result:
    rows: list[Measurement] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        program = folder / "large"
        compile_source(folder / "large.c", SOURCE, [str(BIN / "rankcc")], program)
        bare = measured([str(BIN / "python"), "-c", "import rich.console, elftools"])[1]
        with many_ranks(program, folder) as pid:
            rows += measurements("the process", [str(pid)], bare)
            rows += plain_gdb("the process", "-p", str(pid))
            core = core_file(pid, folder)
        if core is not None:
            rows += measurements(f"its core file, {core.stat().st_size / 1e9:.0f} GB", [str(core)], bare)
            rows += plain_gdb("the core file", str((BIN / "rankrun").resolve()), str(core))
        with job([*rankrun(2 * PROCESSES), "--procs", str(PROCESSES), str(program)]) as pid:
            rows += measurements(f"{PROCESSES} processes", ["--job", str(pid)], bare, ("stacks", "globals", "report"))
    return Result(
        "Sizes",
        f"{RANKS:,} ranks of a program with {SIZE >> 20} MB of data in one process, of which each rank has written to "
        f"a page in every {APART >> 20} MB; the sparse core file that the kernel writes of it; and {PROCESSES} "
        "processes of two such ranks each. Processor time, of user and kernel, of one run; memory is the peak beyond "
        f"what Python takes with the libraries alone ({bare / 1e6:.0f} MB). Plain GDB prints the stack of the one "
        "kernel thread: it sees one rank.",
        tuple(rows),
    )


def measurements(
    what: str, target: list[str], bare: int, commands: tuple[str, ...] = COMMANDS
) -> Iterator[Measurement]:
    """Time and memory of each command."""
    for command in commands:
        seconds, memory = measured([str(BIN / "inspector"), command, *target])
        yield Measurement(f"`inspector {command}`, {what}", seconds, "s")
        yield Measurement("memory", (memory - bare) / 1e6, "MB", LIMIT)


def plain_gdb(what: str, *target: str) -> Iterator[Measurement]:
    """The same of a debugger without the extension."""
    seconds, memory = measured([str(find_gdb()), "-q", "-nx", "-batch", "-ex", "bt", *target])
    yield Measurement(f"plain GDB, {what}", seconds, "s")
    yield Measurement("memory", memory / 1e6, "MB")


@contextmanager
def many_ranks(program: Path, folder: Path) -> Iterator[int]:
    """The process of all ranks, which may leave a core file in a folder."""
    before, here = resource.getrlimit(resource.RLIMIT_CORE), Path.cwd()
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    os.chdir(folder)
    try:
        with job([*rankrun(RANKS), str(program)]) as pid:
            yield pid
    finally:
        os.chdir(here)
        resource.setrlimit(resource.RLIMIT_CORE, before)


def core_file(pid: int, folder: Path) -> Optional[Path]:
    """The kernel's of a process that is made to end, None where it writes none into the folder."""
    if CORE_PATTERN.read_text().strip() != "core":
        return None
    os.kill(pid, signal.SIGABRT)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # the kernel has written it then
    return next((path for path in (folder / "core", folder / f"core.{pid}") if path.exists()), None)
