"""GDB with the extension on jobs of 1,000 ranks: of an ordinary program, and of one with 4,000 functions in one unit.

Compares with plain GDB on the same job, and with 1,000 kernel threads of a program of the same shape, in one run.
"""

from __future__ import annotations

import atexit
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_gdb
from tests.support.running import BIN, PROGRAMS, ROOT

RANKS, MORE_RANKS, FUNCTIONS, DEPTH = 1_000, 10_000, 4_000, 8
TIMEOUT = 300
EXTENSION = ROOT / "gdbext" / "rank.py"
IMPORTS = (f"python import sys; sys.path.append({str(ROOT)!r}); import gdbext.extension",)
REPEAT = 3
ROUNDS = 16
TRIES = 50
ORDINARY = PROGRAMS / "jacobi3d" / "jacobi3d.c"


@dataclass(frozen=True)
class Cost:
    """What one GDB took: seconds of wall time and of processor time, peak memory in bytes; and what it printed."""

    seconds: float
    processor: float
    memory: int
    output: str


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ordinary, program = place / "jacobi3d", place / "ranks"
        compile_file(ORDINARY, [str(BIN / "rankcc"), "-O1"], ordinary, "-lm")
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        with job([*rankrun(RANKS), str(ordinary), "--size", "8", "--seconds", "1e6"], "jacobi3d: ") as pid:
            hold(pid, f"{ORDINARY.name}:")
            ordinary_bare, ordinary_extended = in_turns(pid, (), sourced())
            all_backtraces = gdb(pid, sourced("rank apply all bt"))
        with job([*rankrun(RANKS), str(program)]) as pid:
            hold(pid, "f9 (")
            plain = gdb(pid)
            attached = gdb(pid, sourced())
            by_hand = add_by_hand(pid, program, place / "by_hand")
            bare, hand, imports, extended = in_turns(pid, (), by_hand, IMPORTS, sourced())
            backtrace = gdb(pid, sourced("rank bt 500"))
            tree = gdb(pid, sourced("rank tree"))
            one_break = gdb(pid, sourced("break f100"))
            rank_break = gdb(pid, sourced("rank break f100 0-999"))
        with job([*rankrun(MORE_RANKS), "--method", "none", str(program)]) as pid:  # vm.max_map_count bounds copies
            plain_more = gdb(pid)
            listed = gdb(pid, sourced("rank list"))
    return Result(
        "GDB on many ranks",
        f"{RANKS:,} ranks in one process ({MORE_RANKS:,} for `rank list`); GDB attaches anew for every line, the best "
        f"of {REPEAT}. Times of commands are beyond sourcing the extension. What is compared with plain GDB is "
        f"processor time, in turns, the best of {ROUNDS}. GDB attaches while a rank runs in the program's own code: of "
        f"jacobi3d, an ordinary one, and of a program made for `break FUNCTION`, with {FUNCTIONS:,} functions in one "
        "compilation unit, which all other lines are about. GDB reads the whole unit that a process is stopped in. "
        "Plain GDB does not do so here, where it knows no function at that place; in an ordinary process it would. Of "
        "that program the line of one copy by hand is what this unit and the symbols of one copy alone take.",
        (
            Measurement("attach to jacobi3d, plain GDB, processor time", ordinary_bare.processor, "s"),
            Measurement(
                "attach and source the extension, relative to plain",
                ordinary_extended.processor / ordinary_bare.processor,
                "x",
                1.1,
            ),
            Measurement(f"the same with {FUNCTIONS:,} functions in one unit", extended.processor / bare.processor, "x"),
            Measurement("there, attach and add one copy's symbols by hand", hand.processor / bare.processor, "x"),
            Measurement("there, attach and import the extension's modules", imports.processor / bare.processor, "x"),
            Measurement("first `rank bt`", backtrace.seconds - attached.seconds, "s", 0.2),
            Measurement(
                "`rank apply all bt` in jacobi3d, processor time",
                all_backtraces.processor - ordinary_extended.processor,
                "s",
            ),
            Measurement("`rank tree`", tree.seconds - attached.seconds, "s", 2.0),
            Measurement("`break FUNCTION`", one_break.seconds - attached.seconds, "s", 2.0),
            Measurement(
                "`break FUNCTION`, memory beyond plain GDB", (one_break.memory - plain.memory) / 1e6, "MB", 200
            ),
            Measurement("`rank break FUNCTION 0-999`", rank_break.seconds - attached.seconds, "s", 2.0),
            Measurement("attach and `rank list` of 10,000", listed.seconds - plain_more.seconds, "s", 1.0),
            Measurement("the same, memory beyond plain GDB", (listed.memory - plain_more.memory) / 1e6, "MB", 100),
        ),
    )


def rankrun(ranks: int) -> list[str]:
    return [str(BIN / "rankrun"), "-n", str(ranks), "--stack-size", "65536"]


def sourced(*commands: str) -> tuple[str, ...]:
    return (f"source {EXTENSION}", *commands)


def gdb(pid: int, commands: Sequence[str] = (), repeat: int = REPEAT) -> Cost:
    return min((one_gdb(pid, commands) for _ in range(repeat)), key=lambda cost: cost.seconds)


def in_turns(pid: int, *ways: Sequence[str]) -> list[Cost]:
    """Of each way the run that took the least processor time; in turns, so that all meet the same machine."""
    rounds = [[one_gdb(pid, commands) for commands in ways] for _ in range(ROUNDS)]
    return [min(costs, key=lambda cost: cost.processor) for costs in zip(*rounds)]


def add_by_hand(pid: int, program: Path, copy: Path) -> tuple[str, ...]:
    """What a user would type who knows where the running rank's copy is; of a copy of the file, as the extension's."""
    shutil.copy(program, copy)
    match = re.search(rf"^{program.name} +(0x[0-9a-f]+)", gdb(pid, sourced(f"rank info {RANKS - 1}"), 1).output, re.M)
    if match is None:
        raise RuntimeError("`rank info` tells no copy of the program")
    return (f"add-symbol-file {copy} -o {match[1]}",)


def one_gdb(pid: int, commands: Sequence[str]) -> Cost:
    settings = ("debuginfod enabled off", "auto-load python-scripts off", "pagination off")
    words = ["/usr/bin/time", "-f", "memory %M", str(find_gdb()), "-nx", "-q", "-batch"]
    words += [word for setting in settings for word in ("-iex", f"set {setting}")]
    words += ["-p", str(pid), *(word for command in commands for word in ("-ex", command))]
    # As for a user: from the second time on Python has the extension's bytecode, which it writes unless forbidden to.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode()
    start, before = time.perf_counter(), processor_seconds()
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, env=environment
    )
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    memory = re.search(r"^memory (\d+)$", done.stderr, re.MULTILINE)
    if done.returncode or memory is None:
        raise RuntimeError(f"GDB failed on {commands}: {done.stderr[-2000:]}")
    return Cost(seconds, processor, 1024 * int(memory.group(1)), done.stdout)


def processor_seconds() -> float:
    """Of all commands that have ended, in user and kernel mode."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@cache
def bytecode() -> str:
    """A folder for Python's bytecode, so that the measurement leaves none in the tree."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def hold(pid: int, place: str) -> None:
    """Stop the job where GDB shows `place` of a rank that runs: every run then meets the same, and nothing competes."""
    for _ in range(TRIES):
        os.kill(pid, signal.SIGSTOP)
        if place in gdb(pid, sourced(), 1).output.rpartition(" runs here]")[2]:
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
    raise RuntimeError(f"no rank was found at {place}")


@contextmanager
def job(command: list[str], ready: str = "ready\n") -> Iterator[int]:
    """A process that has said that it is ready; its pid."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline().startswith(ready):
            raise RuntimeError(f"{command[0]} ended early")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def compile_source(file: Path, text: str, compiler: list[str], program: Path) -> None:
    file.write_text(text)
    compile_file(file, [*compiler, "-O0"], program)


def compile_file(file: Path, compiler: list[str], program: Path, *libraries: str) -> None:
    subprocess.run([*compiler, "-g", str(file), "-o", str(program), *libraries], check=True, timeout=TIMEOUT)


def functions() -> str:
    return "".join(
        f"__attribute__((noinline)) int f{number}(int a) {{ static int calls; calls += a; return total += calls; }}\n"
        for number in range(FUNCTIONS)
    )


def ranks_source() -> str:
    """All ranks wait `DEPTH` calls deep but the last, which runs."""
    return f"""#include <mpi.h>
#include <stdio.h>
int my_rank, total;
{functions()}
static void deep(int n, int last) {{
    int word;
    if (n) deep(n - 1, last);
    else MPI_Recv(&word, 1, MPI_INT, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    total++;
}}
int main(int argc, char **argv) {{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    my_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < size - 1) deep({DEPTH}, size - 1);
    for (int i = 0; i < size; i++) MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &total, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (;;) f9(1);
}}
"""


def threads_source() -> str:
    return f"""#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int total;
static sem_t never;
static pthread_barrier_t all;
{functions()}
static void deep(int n) {{
    if (n) deep(n - 1);
    else {{ pthread_barrier_wait(&all); sem_wait(&never); }}
    total++;
}}
static void *run(void *unused) {{ deep({DEPTH}); return unused; }}
int main(int argc, char **argv) {{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_attr_t small;
    pthread_t thread;
    sem_init(&never, 0, 0);
    pthread_barrier_init(&all, NULL, count + 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < count; i++) pthread_create(&thread, &small, run, NULL);
    pthread_barrier_wait(&all);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}}
"""
