"""GDB without the extension through `inspector serve`: one rank on demand, and every rank as an inferior.

Compares with a plain attach to the same job, and with an attach with the extension, for one rank and for all.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.gdb_ranks import EXTENSION, TIMEOUT, Cost, rankrun
from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_gdb, gdb_version
from tests.support.running import BIN, ROOT

SIZES = (8, 64, 256, 1_000)
REPEAT = 2
BASE = 5_000_000  # the pid of rank 0
SOURCE = Path(__file__).parent / "programs" / "all_wait.c"
SETTINGS = ("debuginfod enabled off", "auto-load python-scripts off", "pagination off", "sysroot /", "remotetimeout 60")
PLAIN, OTHER, ONE = "plain attach, no rank", "extension, one rank", "serve, one rank"
LOOP = ROOT / "docs" / "ranks.gdb"


@dataclass(frozen=True)
class Way:
    """GDB's commands to reach ranks. `values` are printed one by one; `prints` is what else has to be there."""

    name: str
    commands: tuple[str, ...]
    values: int = 0
    prints: str = ""


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
        "Stock GDB through `inspector serve`, whose start is included; all ranks wait in MPI_Recv. Of the whole of "
        f"GDB's run, the best of {REPEAT} (all of 1,000: of one): time elapsed, processor time with the server's, "
        "GDB's memory. Each run prints a global variable of the ranks that it has.",
        tuple(measurements),
    )


def measured(pid: int, ranks: int) -> Iterator[Measurement]:
    costs: dict[str, Cost] = {}
    for way in ways(pid, ranks):
        repeat = 1 if ranks == max(SIZES) and way.values > 1 else REPEAT
        cost = costs[way.name] = min((gdb(way) for _ in range(repeat)), key=lambda each: each.processor)
        yield Measurement(f"{ranks:,} ranks: {way.name}", cost.seconds, "s")
        yield Measurement("... processor time", cost.processor, "s")
        yield Measurement("... memory", cost.memory / 1e6, "MB")
    served = costs[ONE]
    yield Measurement(
        "one rank, processor time over the extension's", served.processor / costs[OTHER].processor, "x", 1.25
    )
    yield Measurement("one rank, memory over a plain attach's", served.memory / costs[PLAIN].memory, "x", 1.05)


def ways(pid: int, ranks: int) -> Iterator[Way]:
    serve, print_each = f"target extended-remote | {BIN / 'inspector'} serve {pid}", "thread apply all -q print my_rank"
    some, extended = ranks // 2, (f"attach {pid}", f"source {EXTENSION}")
    yield Way(PLAIN, (f"attach {pid}",))
    yield Way(OTHER, (*extended, f"rank {some}", "print my_rank"), 1)
    yield Way("extension, all ranks", (*extended, "rank print my_rank"), prints=rf"\b{ranks - 1}\b")
    yield Way(ONE, (serve, f"attach {BASE + some}", "print my_rank"), 1)
    yield Way("serve, all ranks one by one", (serve, f"source {LOOP}", f"ranks {ranks}", print_each), ranks)
    if gdb_version() < (17, 0):
        yield Way("serve --all", (f"{serve} --all", "thread apply all -q set sysroot /", print_each), ranks)


def gdb(way: Way) -> Cost:
    """One run, which has to print so many values."""
    words = ["/usr/bin/time", "-f", "cost %M %U %S", str(find_gdb()), "-nx", "-q", "-batch"]
    words += [word for setting in SETTINGS for word in ("-iex", f"set {setting}")]
    words += [word for command in way.commands for word in ("-ex", command)]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    cost = re.search(r"^cost (\d+) (\S+) (\S+)$", done.stderr, re.MULTILINE)
    values = len(re.findall(r"^\$\d+ = \d+$", done.stdout, re.MULTILINE))
    if cost is None or values != way.values or not re.search(way.prints, done.stdout):
        raise RuntimeError(f"GDB failed on {way.commands}: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return Cost(seconds, float(cost[2]) + float(cost[3]), 1024 * int(cost[1]), done.stdout)


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
