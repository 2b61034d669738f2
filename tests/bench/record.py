"""What `inspector record` costs the job that it records, and how many samples it takes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.gdb_ranks import compile_source
from tests.bench.harm import SOURCE
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

RANKS = 64
PAIRS = 15
MOST_LOST = 2.0  # % of the job's time
BEGUN = "inspector: recording process "


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "relax"
        compile_source(place / "relax.c", SOURCE, [str(BIN / "rankcc"), "-O2"], program)
        worked(program, False)  # the program and the tools are in memory now
        costs: list[float] = []  # % of the job's processor time
        recordings: list[dict[str, Any]] = []
        for number in range(PAIRS):
            order = (False, True) if number % 2 else (True, False)
            seconds = {}
            for is_recorded in order:
                seconds[is_recorded], recording = worked(program, is_recorded)
                recordings += recording
            costs.append(100 * (seconds[True] / seconds[False] - 1))
    stopped = 100 * statistics.median(found["stopped_share"] for found in recordings)
    rate = statistics.median(found["samples"] / found["seconds"] for found in recordings)
    return Result(
        "Recording",
        f"{RANKS} ranks on one kernel thread do a fixed amount of work, alone and under `inspector record`, in turns: "
        f"{PAIRS} pairs. Processor time is the job's own (wait4), without the tool's. While a sample is taken the job "
        "stands still; that takes no processor time, and comes on top. It asks for 100 samples a second, and takes "
        "fewer where pauses, or the processor time that it takes from a job whose processors are all busy, would be "
        f"more than {MOST_LOST:.0f} % of the job's time.",
        (
            Measurement(
                "processor time of the job under `record`, beyond that alone, median", statistics.median(costs), "%"
            ),
            Measurement("standing still for `record`, median", stopped, "%", MOST_LOST),
            Measurement("samples of all ranks", rate, "a second"),
        ),
    )


def worked(program: Path, is_recorded: bool) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of processor time that the job took, and what was recorded."""
    job = subprocess.Popen([str(BIN / "rankrun"), "-n", str(RANKS), str(program)], stdout=subprocess.DEVNULL)
    command = [str(BIN / "inspector"), "record", str(job.pid), "--json"]
    recorder = (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) if is_recorded else None
    )
    _, status, used = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode:
        raise RuntimeError(f"the job has ended with status {job.returncode}")
    if recorder is None:
        return used.ru_utime + used.ru_stime, []
    printed, problems = recorder.communicate()
    if not problems.startswith(BEGUN):
        raise RuntimeError(problems)
    return used.ru_utime + used.ru_stime, [json.loads(printed)]
