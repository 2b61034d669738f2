"""What `inspector report` once a second costs the job, beyond the processor time that the tool itself takes."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

from tests.bench.gdb_ranks import compile_source
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

RANKS = 8
PAIRS = 30
EVERY = 1.0  # seconds
TURNS = 250  # of each rank: some seconds of work in all
SOURCE = f"""#include <mpi.h>
#include <stdio.h>
static double cells[64][64];
static double relax(void) {{
    double sum = 0;
    for (int pass = 0; pass < 40; pass++)
        for (int i = 1; i < 63; i++)
            for (int j = 1; j < 63; j++)
                sum += cells[i][j] = 0.25 * (cells[i - 1][j] + cells[i + 1][j] + cells[i][j - 1] + cells[i][j + 1]) + 1;
    return sum;
}}
int main(int argc, char **argv) {{
    double sum = 0, all = 0;
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < {TURNS}; turn++) {{
        sum = relax();
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }}
    MPI_Finalize();
    return all == 0;
}}
"""


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "relax"
        compile_source(place / "relax.c", SOURCE, [str(BIN / "rankcc"), "-O2"], program)
        worked(program, False)  # the program and the tools are in memory now
        costs: list[float] = []  # seconds of processor time for each report
        stops: list[float] = []  # seconds
        for number in range(PAIRS):
            order = (False, True) if number % 2 else (True, False)
            times = {is_looked_at: worked(program, is_looked_at) for is_looked_at in order}
            (alone, _), (looked_at, pauses) = times[False], times[True]
            stops += pauses
            if pauses:
                costs.append((looked_at - alone) / len(pauses))
    cost, stop = (100 * statistics.median(times) / EVERY for times in (costs, stops))
    return Result(
        "Harm to the job",
        f"{RANKS} ranks on one kernel thread do a fixed amount of work, alone and with `inspector report` once a "
        f"second, in turns: {len(costs)} pairs, {len(stops)} reports. Processor time is the job's own (wait4), without "
        "the tool's. As long as a pause lasts the job stands still; that takes no processor time, and comes on top.",
        (
            Measurement("processor time of the job for a report a second, median of the pairs", cost, "%", 1),
            Measurement("standing still for a report a second, median pause", stop, "%", 1),
        ),
    )


def worked(program: Path, is_looked_at: bool) -> tuple[float, list[float]]:
    """Seconds of processor time that the job took, and for how many each report stopped it."""
    job = subprocess.Popen([str(BIN / "rankrun"), "-n", str(RANKS), str(program)], stdout=subprocess.DEVNULL)
    has_ended = threading.Event()
    pauses: list[float] = []
    reporter = threading.Thread(target=report, args=(job.pid, has_ended, pauses))
    if is_looked_at:
        reporter.start()
    _, status, used = os.wait4(job.pid, 0)
    has_ended.set()
    job.returncode = os.waitstatus_to_exitcode(status)
    if is_looked_at:
        reporter.join()
    if job.returncode:
        raise RuntimeError(f"the job has ended with status {job.returncode}")
    return used.ru_utime + used.ru_stime, pauses


def report(pid: int, has_ended: threading.Event, pauses: list[float]) -> None:
    """Report once a second until the job has ended."""
    while not has_ended.wait(EVERY):
        done = subprocess.run([str(BIN / "inspector"), "report", str(pid)], capture_output=True, text=True, check=False)
        pauses += [float(pause) / 1000 for pause in re.findall(r"stood still for ([0-9.]+) ms", done.stdout)]
