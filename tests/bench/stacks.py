"""Stacks of all ranks without a debugger, against eu-stack on as many kernel threads of a program of the same shape."""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.unwind import UnwoundStack
from pieglobalsfind.targets.live import LiveTarget
from tests.bench.gdb_ranks import compile_source, job, rankrun, ranks_source, threads_source
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

RANKS, MORE_RANKS = 512, 10_000
COMMAND_RANKS = 1000  # of which the whole command is measured
TURNS = 5
TIMEOUT = 300


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program, threads = place / "ranks", place / "threads"
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        compile_source(place / "threads.c", threads_source(), ["gcc", "-pthread"], threads)
        with job([*rankrun(RANKS), str(program)]) as pid:
            seconds, processor, frames = walked(pid)
        with job([*rankrun(MORE_RANKS), "--method", "none", str(program)]) as pid:  # vm.max_map_count bounds copies
            more_seconds, _, more_frames = walked(pid)
        with job([str(threads), str(RANKS)]) as pid:
            theirs = eu_stack(pid)
        with job([*rankrun(COMMAND_RANKS), str(program)]) as pid:
            command = best_spent([str(BIN / "inspector"), "stacks", str(pid)])[0]
        with job([str(threads), str(COMMAND_RANKS)]) as pid:
            their_command = best_spent(["eu-stack", "-s", "-p", str(pid)])[0]
    ours = processor / frames
    return Result(
        "Stacks without a debugger",
        f"Suspended ranks of a running job, walked and named with file and line, {frames // RANKS} frames each; the "
        f"best of {TURNS} walks of a process that is already open, and of {TURNS} eu-stacks; per frame in processor "
        "time, of user and kernel; so are the last two rows, whole commands.",
        (
            Measurement(f"{RANKS} ranks", seconds, "s", 0.1),
            Measurement(f"{MORE_RANKS:,} ranks, {more_frames // MORE_RANKS} frames each", more_seconds, "s", 1.0),
            Measurement("per frame", 1e6 * ours, "us"),
            Measurement("eu-stack per frame", 1e6 * theirs, "us"),
            Measurement("the one relative to the other", ours / theirs, "x", 0.05),
            Measurement(f"`inspector stacks PID`, {COMMAND_RANKS:,} ranks, Python's start included", command, "s", 0.5),
            Measurement(f"`eu-stack -s -p PID`, {COMMAND_RANKS:,} threads", their_command, "s"),
        ),
    )


def walked(pid: int) -> tuple[float, float, int]:
    """Seconds, seconds of processor time and frames of the best walk through all suspended ranks, rank table included.

    The first, which opens files, doesn't count.
    """
    target = LiveTarget(pid)
    seconds, processor, frames = [], [], 0
    for _ in range(1 + TURNS):
        start, spent = time.perf_counter(), time.process_time()
        moment = ProcessView(target, decode(target))
        suspended = [rank for rank in moment.table.ranks if rank.state != RUNNING]
        stacks = [walked for _, walked in moment.walker.stacks(suspended) if isinstance(walked, UnwoundStack)]
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - spent)
        frames = sum(len(stack.calls) for stack in stacks)
    return min(seconds[1:]), min(processor[1:]), frames


def eu_stack(pid: int) -> float:
    """Seconds of processor time per frame of the best eu-stack."""
    spent, output = best_spent(["eu-stack", "-s", "-p", str(pid)])
    return spent / len(re.findall(r"^#\d+ ", output, re.MULTILINE))


def best_spent(command: Sequence[str]) -> tuple[float, str]:
    """Seconds of processor time, of user and kernel, and the output of the best run; the first fills caches."""
    costs = []
    for _ in range(1 + TURNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        costs.append((spent, done.stdout))
    return min(costs[1:])
