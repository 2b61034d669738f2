"""What `inspector record` costs the job that it records, and how many samples it takes."""

from __future__ import annotations

import json
import os
import statistics
import struct
import subprocess
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from inspector.recording import pace
from tests.bench.gdb_ranks import compile_source
from tests.bench.result import Measurement, Result
from tests.support.running import BIN
from tests.support.waiting import wait_until

RANKS = 8, 64
PAIRS = 10
PART = 1.5  # seconds with a recorder, and as many without one
MOST_LOST = 2.0  # % of the job's time
BEGUN = "inspector: recording process "
TURN = struct.Struct("<dd")  # when rank 0 ended a turn, and the processor time of the process until then, seconds
SOURCE = """#include <fcntl.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>
static double cells[64][64];
static double relax(void) {
    double sum = 0;
    for (int pass = 0; pass < 4; pass++)
        for (int i = 1; i < 63; i++)
            for (int j = 1; j < 63; j++)
                sum += cells[i][j] = 0.25 * (cells[i - 1][j] + cells[i + 1][j] + cells[i][j - 1] + cells[i][j + 1]) + 1;
    return sum;
}
static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
int main(int argc, char **argv) {
    double sum = 0, all = 0;
    int rank = 0, file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (;;) {
        sum = relax();
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) {
            double turn[2] = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
            if (write(file, turn, sizeof turn) != sizeof turn)
                return 1;
        }
    }
}
"""


class Speed(NamedTuple):
    """Seconds that a turn of all ranks took: by the clock, and of the process's processor time."""

    elapsed: float
    processor: float


@dataclass(frozen=True)
class Part:
    """A part of the job's time, by the monotonic clock; `recording` is what the recorder printed, if there was one."""

    start: float
    end: float
    recording: dict[str, Any]


def run() -> Result:
    """Measure jobs of few and of more ranks in turns with and without a recorder."""
    others = os.getloadavg()[0]
    return Result(
        "Recording",
        f"{' or '.join(map(str, RANKS))} ranks on one kernel thread compute and exchange. {PAIRS} times in turns, "
        f"{PART:g} s each, they are alone and under `inspector record`; rank 0 notes when each turn of all ranks ends. "
        "Processor time is the job's own, without the tool's. Elapsed time contains the pauses, and what the tool "
        "takes from the job where other programs keep the machine's processors busy. The command asks for 100 samples "
        "a second, and takes fewer where pauses, or the processor time that it takes from a job whose processors are "
        f"all busy, would be more than {100 * pace.MOST_LOST:.1f} % of the job's time. Median of the pairs; in "
        f"brackets, the middle half of them. As it began, {others:.1f} other programs ran on {os.cpu_count()} "
        "processors (load average).",
        tuple(measurement for ranks in RANKS for measurement in measured(ranks)),
    )


def measured(ranks: int) -> Iterator[Measurement]:
    """What recording costs one job of so many ranks, and how many samples it takes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        compile_source(place / "relax.c", SOURCE, [str(BIN / "rankcc"), "-O2"], place / "relax")
        log = place / "turns"
        job = subprocess.Popen([str(BIN / "rankrun"), "-n", str(ranks), str(place / "relax"), str(log)])
        try:
            wait_until(lambda: log.exists() and log.stat().st_size > 0, "the job's first turn")
            pairs = [(alone(), recorded(job.pid)) for _ in range(PAIRS)]
        finally:
            job.terminate()
            job.wait()
        turns = list(TURN.iter_unpack(log.read_bytes()))
    speeds = [(speed(turns, without), speed(turns, under)) for without, under in pairs]
    recordings = [under.recording for _, under in pairs]
    processor = [100 * (under.processor / without.processor - 1) for without, under in speeds]
    elapsed = [100 * (under.elapsed / without.elapsed - 1) for without, under in speeds]
    who = f"{ranks} ranks"
    yield Measurement(
        f"{who}: processor time of a turn, beyond that alone ({middle(processor)})",
        statistics.median(processor),
        "%",
        MOST_LOST,
    )
    yield Measurement(
        f"{who}: elapsed time of a turn, beyond that alone ({middle(elapsed)})",
        statistics.median(elapsed),
        "%",
        MOST_LOST,
    )
    yield Measurement(
        f"{who}: standing still", 100 * statistics.median(one["stopped_share"] for one in recordings), "%", MOST_LOST
    )
    yield Measurement(
        f"{who}: samples of all ranks",
        statistics.median(one["samples"] / one["seconds"] for one in recordings),
        "a second",
    )


def alone() -> Part:
    """Let the job run for a while."""
    start = time.monotonic()
    time.sleep(PART)
    return Part(start, time.monotonic(), {})


def recorded(pid: int) -> Part:
    """Record the job for a while: from the first sample to the last one, without the tool's own start."""
    command = [str(BIN / "inspector"), "record", str(pid), "--json", "--duration", f"{PART:g}s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stderr is not None
        line = recorder.stderr.readline()
        start = time.monotonic()
        if not line.startswith(BEGUN):
            raise RuntimeError(line + recorder.communicate()[1])
        recording = json.loads(recorder.communicate()[0])
    return Part(start, start + recording["seconds"], recording)


def speed(turns: list[tuple[float, float]], part: Part) -> Speed:
    """Seconds per turn of those that began and ended within a part of the time."""
    first, last = (bisect_left(turns, (moment, 0.0)) for moment in (part.start, part.end))
    (start, used_before), (end, used) = turns[first], turns[last - 1]
    count = last - 1 - first
    return Speed((end - start) / count, (used - used_before) / count)


def middle(costs: list[float]) -> str:
    """`0.1 to 0.9`: the middle half."""
    lower, _, upper = statistics.quantiles(costs, n=4)
    return f"{lower:.1f} to {upper:.1f}"
