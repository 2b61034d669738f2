"""64 collectors in one tree, really run on this machine under MPICH: from the command to the first output.

Each sees one process of a job of 64, as on a node of its own: the others are hidden by mounts, which takes root. Beside
it two programs that call MPI_Init and MPI_Reduce and nothing else, in C and in Python, started as often.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inspector.collect.mpi_library import MPICH, folder_of_link
from pieglobalsfind.jobs.members import members_of
from tests.bench.gdb_ranks import compile_source, job, rankrun
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

COLLECTORS = 64
LIMIT = 3.0  # seconds
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 1 << 14, 1 << 18
PROGRAM = """#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int my_rank;
int main(int argc, char **argv) {
    int word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank)
        MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
"""
PLAIN = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) {
        printf("%d\\n", sum);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
"""
IN_PYTHON = """
from mpi4py import MPI
total = MPI.COMM_WORLD.reduce(MPI.COMM_WORLD.Get_rank())
if total is not None:
    print(total, flush=True)
"""
NODE = '#!/bin/sh\nexec nsenter --mount="$0.$PMI_RANK" "$@"\n'
libc = ctypes.CDLL(None, use_errno=True)


def run() -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, plain = folder / "program", folder / "plain"
        compile_source(folder / "program.c", PROGRAM, [str(BIN / "rankcc")], program)
        compile_source(folder / "plain.c", PLAIN, ["mpicc.mpich"], plain)
        mpiexec = ["mpiexec.mpich", "-n", str(COLLECTORS)]
        bare, bare_cpu, _ = first_output([*mpiexec, str(plain)])
        python, python_cpu, _ = first_output([*mpiexec, *site_libraries(), sys.executable, "-c", IN_PYTHON])
        with job([*rankrun(COLLECTORS), "--procs", str(COLLECTORS), str(program)]) as pid:
            members = members_of(str(pid))
            with nodes([member.pid for member in members.found], folder) as node:
                words = [str(BIN / "inspector"), "stacks", "--json", "--mpi", "--job", members.name.partition(" ")[2]]
                runs = [first_output([*mpiexec, node, *words]) for _ in range(2)]  # the second finds what is cached
    found = json.loads(runs[-1][2])
    ranks = {stack["ranks"] for stack in found["stacks"]}
    if ranks != {"0", f"1-{COLLECTORS - 1}"} or found["missing"]:
        raise AssertionError(found)
    seconds, processor, _ = runs[-1]
    return Result(
        "Collectors of many nodes",
        f"{COLLECTORS} collectors under MPICH's mpiexec on this one machine, in one tree, each of which sees one "
        "process of the job, and the stacks of all ranks together. Beside it, as often, a C program and a Python "
        f"program (mpi4py) that call MPI_Init and MPI_Reduce. Elapsed time, on {os.cpu_count()} processors: all "
        "collectors share them, as nodes do not.",
        (
            Measurement(f"first output of `inspector stacks --mpi`, {COLLECTORS} collectors", seconds, "s", LIMIT),
            Measurement("processor time of them all", processor, "s"),
            Measurement("first output of the C program", bare, "s"),
            Measurement("processor time of them all", bare_cpu, "s"),
            Measurement("first output of the Python program", python, "s"),
            Measurement("processor time of them all", python_cpu, "s"),
        ),
    )


def site_libraries() -> list[str]:
    """The words before a Python program by which mpi4py's wheel finds Debian's MPICH."""
    folder = folder_of_link(MPICH)
    return ["env", f"LD_LIBRARY_PATH={folder}", "MPI4PY_MPIABI=mpich"] if folder else []


def first_output(command: Sequence[str]) -> tuple[float, float, str]:
    """Seconds until something is printed, processor seconds of all until the end, and what is printed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        seconds = time.monotonic() - start
        text = (first + process.stdout.read()).decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, text


@contextmanager
def nodes(pids: Sequence[int], folder: Path) -> Iterator[str]:
    """A mount namespace for each process, in which the others are hidden; gives the command that enters one."""
    node = folder / "node"
    node.write_text(NODE)
    node.chmod(0o755)
    (folder / "empty").mkdir()
    ends, holds = os.pipe()
    holders = []
    for place, pid in enumerate(pids):
        tell, told = os.pipe()
        holder = os.fork()
        if not holder:
            os.close(holds)
            os.close(tell)
            hide([other for other in pids if other != pid], folder / "empty")
            os.write(told, b"!")
            os.read(ends, 1)  # until the other end is closed
            os._exit(0)
        os.close(told)
        assert os.read(tell, 1) == b"!", "a mount namespace takes root"
        os.close(tell)
        (folder / f"node.{place}").symlink_to(f"/proc/{holder}/ns/mnt")
        holders.append(holder)
    try:
        yield str(node)
    finally:
        os.close(holds)
        for holder in holders:
            os.waitpid(holder, 0)


def hide(pids: Sequence[int], empty: Path) -> None:
    """In a mount namespace of its own."""
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None):
        os._exit(1)
    for pid in pids:
        libc.mount(str(empty).encode(), f"/proc/{pid}".encode(), None, 1 << 12, None)  # MS_BIND
