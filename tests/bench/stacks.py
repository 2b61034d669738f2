"""Stacks of all ranks without a debugger, against eu-stack on as many kernel threads of a program of the same shape."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

from pieglobalsfind.command import Moment
from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING
from pieglobalsfind.stack_walk import Walked
from pieglobalsfind.targets.live import LiveTarget
from tests.bench.gdb_ranks import compile_source, job, rankrun, ranks_source, threads_source
from tests.bench.result import Measurement, Result
from tests.conftest import BIN

RANKS, MORE_RANKS = 512, 10_000
TIMEOUT = 300


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program, threads = place / "ranks", place / "threads"
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        compile_source(place / "threads.c", threads_source(), ["gcc", "-pthread"], threads)
        with job([*rankrun(RANKS), str(program)]) as pid:
            seconds, frames = walked(pid)
        with job([*rankrun(MORE_RANKS), "--method", "none", str(program)]) as pid:  # vm.max_map_count bounds copies
            more_seconds, more_frames = walked(pid)
        with job([str(threads), str(RANKS)]) as pid:
            their_seconds, their_frames = eu_stack(pid)
    ours, theirs = seconds / frames, their_seconds / their_frames
    return Result(
        "Stacks without a debugger",
        f"Suspended ranks of a running job, walked and named with file and line, {frames // RANKS} frames each; the "
        "second walk of a process that is already open, and eu-stack's only one.",
        (
            Measurement(f"{RANKS} ranks", seconds, "s", 0.1),
            Measurement(f"{MORE_RANKS:,} ranks, {more_frames // MORE_RANKS} frames each", more_seconds, "s", 1.0),
            Measurement("per frame", 1e6 * ours, "us"),
            Measurement("eu-stack per frame", 1e6 * theirs, "us"),
            Measurement("the one relative to the other", ours / theirs, "x", 0.05),
        ),
    )


def walked(pid: int) -> tuple[float, int]:
    """Seconds and frames of one walk through all suspended ranks, rank table included."""
    target = LiveTarget(pid)
    best, frames = float("inf"), 0
    for _ in range(3):
        start = time.perf_counter()
        moment = Moment(target, decode(target))
        suspended = [rank for rank in moment.table.ranks if rank.state != RUNNING]
        stacks = [walked for _, walked in moment.walker.stacks(suspended) if isinstance(walked, Walked)]
        best, frames = min(best, time.perf_counter() - start), sum(len(one.calls) for one in stacks)
    return best, frames


def eu_stack(pid: int) -> tuple[float, int]:
    start = time.perf_counter()
    done = subprocess.run(["eu-stack", "-s", "-p", str(pid)], capture_output=True, text=True, timeout=TIMEOUT)
    return time.perf_counter() - start, len(re.findall(r"^#\d+ ", done.stdout, re.MULTILINE))
