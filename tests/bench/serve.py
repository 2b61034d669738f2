"""GDB without the extension through `inspector serve`: one rank on demand, and every rank as an inferior.

Compares with a plain attach to the same job, and with an attach with the extension.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.gdb_ranks import EXTENSION, TIMEOUT, Cost, rankrun
from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_gdb
from tests.support.running import BIN, ROOT

SIZES = (8, 64, 256, 1_000)
REPEAT = 2
BASE = 5_000_000  # the pid of rank 0
SOURCE = Path(__file__).parent / "programs" / "all_wait.c"
SETTINGS = ("debuginfod enabled off", "auto-load python-scripts off", "pagination off", "sysroot /", "remotetimeout 60")
LOOP = ROOT / "docs" / "ranks.gdb"


def run() -> Result:
    measurements: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "all_wait"
        subprocess.run([str(BIN / "rankcc"), "-g", "-O0", str(SOURCE), "-o", str(program)], check=True, timeout=TIMEOUT)
        for ranks in SIZES:
            with job([*rankrun(ranks), str(program)]) as pid:
                measurements += measured(pid, ranks)
    return Result(
        "Any debugger on many ranks",
        "Stock GDB through `inspector serve`, whose start is included; all ranks wait in MPI_Recv. Wall time of the "
        f"whole of GDB's run, the best of {REPEAT}; memory is GDB's alone. Each run prints a global variable of the "
        "ranks that it has.",
        tuple(measurements),
    )


def measured(pid: int, ranks: int) -> Iterator[Measurement]:
    serve = f"target extended-remote | {BIN / 'inspector'} serve {pid}"
    one = (serve, f"attach {BASE + ranks // 2}", "print my_rank")
    every = (serve, f"source {LOOP}", f"ranks {ranks}", "thread apply all -q print my_rank")
    extended = (f"attach {pid}", f"source {EXTENSION}", f"rank {ranks // 2}", "print my_rank")
    for name, commands, values in (
        ("plain attach", (f"attach {pid}",), 0),
        ("attach, extension, print in one rank", extended, 1),
        ("serve, attach to one rank, print", one, 1),
        ("serve, every rank an inferior, print in each", every, ranks),
    ):
        cost = min((gdb(commands, values) for _ in range(REPEAT)), key=lambda each: each.seconds)
        yield Measurement(f"{ranks:,} ranks: {name}", cost.seconds, "s")
        yield Measurement(f"{ranks:,} ranks: the same, memory of GDB", cost.memory / 1e6, "MB")


def gdb(commands: Sequence[str], values: int) -> Cost:
    """One run, which has to print so many values."""
    words = ["/usr/bin/time", "-f", "memory %M", str(find_gdb()), "-nx", "-q", "-batch"]
    words += [word for setting in SETTINGS for word in ("-iex", f"set {setting}")]
    words += [word for command in commands for word in ("-ex", command)]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    memory = re.search(r"^memory (\d+)$", done.stderr, re.MULTILINE)
    if memory is None or len(re.findall(r"^\$\d+ = \d+$", done.stdout, re.MULTILINE)) != values:
        raise RuntimeError(f"GDB failed on {commands}: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return Cost(seconds, 0.0, 1024 * int(memory[1]), done.stdout)


@contextmanager
def job(command: list[str]) -> Iterator[int]:
    """A job whose ranks all wait, by what rankrun says of it; its pid."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        if not any("waits for a debugger" in line for line in process.stderr):
            raise RuntimeError(f"{command[0]} ended early")
        yield process.pid
    finally:
        process.kill()
        process.wait()
