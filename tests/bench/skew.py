"""How nearly at one moment many processes stop that all spin, on a machine with fewer processors."""

from __future__ import annotations

import mmap
import os
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pieglobalsfind.targets.ptrace import Standstill
from tests.bench.gdb_ranks import compile_source
from tests.bench.result import Measurement, Result

PROCESSES = 16
TURNS = 100
REST = 0.02  # seconds between two stops
SOURCE = """#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int main(int count, char **words) {
    volatile double *clocks = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(words[1], O_RDWR), 0);
    for (struct timespec now; count;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        clocks[atoi(words[2])] = now.tv_sec + now.tv_nsec * 1e-9;
    }
    return 0;
}
"""


def run() -> Result:
    skews, late, stood = measured()
    return Result(
        "Sixteen spinning processes at one moment",
        f"{PROCESSES} processes on {os.cpu_count()} processors write the time into memory all the time. {TURNS} times "
        "all are stopped, and the time that each wrote last is compared with when it was asked to stop: "
        f"{sum(seconds > 0 for seconds in late)} of {len(late)} wrote a later one. How long it takes until all stand "
        "still depends on what else wants the processors: each has to get one to stop, but runs no more of it.",
        (
            Measurement("skew, median", 1000 * statistics.median(skews), "ms", 2),
            Measurement("skew, the 95th of 100", 1000 * sorted(skews)[TURNS * 95 // 100], "ms"),
            Measurement("from the first request until all stood still, median", 1000 * statistics.median(stood), "ms"),
        ),
    )


def measured() -> tuple[list[float], list[float], list[float]]:
    """Seconds: the skews, how long after its request each process wrote last, and how long it took to stop all."""
    skews, late, stood = [], [], []
    with tempfile.TemporaryDirectory() as folder, spinning(Path(folder)) as (pids, clocks):
        for _ in range(TURNS):
            begun = time.monotonic()
            standstill = Standstill(pids)
            done = time.monotonic()
            written = struct.unpack_from(f"{len(pids)}d", clocks)
            late += [at - standstill.asked[pid] for pid, at in zip(pids, written)]
            standstill.release()
            skews.append(standstill.skew)
            stood.append(done - max(begun, min(standstill.asked.values())))
            time.sleep(REST)
    return skews, late, stood


@contextmanager
def spinning(folder: Path) -> Iterator[tuple[list[int], mmap.mmap]]:
    """The processes, and the memory that they share."""
    compile_source(folder / "spin.c", SOURCE, ["gcc"], folder / "spin")
    shared = folder / "shared"
    shared.write_bytes(bytes(mmap.PAGESIZE))
    processes = [subprocess.Popen([str(folder / "spin"), str(shared), str(number)]) for number in range(PROCESSES)]
    try:
        with shared.open("r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as clocks:
            while not all(struct.unpack_from(f"{PROCESSES}d", clocks)):
                time.sleep(REST)
            yield [process.pid for process in processes], clocks
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
