"""Stacks of all ranks without a debugger, against eu-stack on as many kernel threads of a program of the same shape.

Whole commands also beside `py-spy dump` on as many threads of a Python program whose stacks are as deep.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.unwind import UnwoundStack
from pieglobalsfind.targets.live import LiveTarget
from tests.bench.gdb_ranks import compile_source, job, rankrun, ranks_source, threads_source
from tests.bench.inspector import measured
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

RANKS, MORE_RANKS = 512, 10_000
COMMAND_RANKS = {64: 0.25, 1000: 0.5}  # of which the whole command is measured, in at most so many seconds
PYTHON_THREADS = """import sys, threading
ready = threading.Barrier(int(sys.argv[1]) + 1)
never = threading.Event()
def deep(n):
    if n:
        deep(n - 1)
    else:
        ready.wait()
        never.wait()
threading.stack_size(1 << 16)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=deep, args=(8,), daemon=True).start()
ready.wait()
print("ready", flush=True)
never.wait()
"""
TURNS = 5
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
            theirs = eu_stack(pid)
        commands = [row for ranks, limit in COMMAND_RANKS.items() for row in whole(program, threads, ranks, limit)]
    ours = seconds / frames
    return Result(
        "Stacks without a debugger",
        f"Suspended ranks of a running job, walked and named with file and line, {frames // RANKS} frames each; the "
        f"best of {TURNS} walks of a process that is already open, and of {TURNS} eu-stacks. The last rows are whole "
        "commands, the start of Python included. Processor time, of user and kernel.",
        (
            Measurement(f"{RANKS} ranks", seconds, "s", 0.1),
            Measurement(f"{MORE_RANKS:,} ranks, {more_frames // MORE_RANKS} frames each", more_seconds, "s", 1.0),
            Measurement("per frame", 1e6 * ours, "us"),
            Measurement("eu-stack per frame", 1e6 * theirs, "us"),
            Measurement("the one relative to the other", ours / theirs, "x", 0.05),
            *commands,
        ),
    )


def whole(program: Path, threads: Path, count: int, limit: float) -> Iterator[Measurement]:
    """Whole commands on so many ranks, or threads; a row less where py-spy is not installed."""
    with job([*rankrun(count), str(program)]) as pid:
        yield Measurement(
            f"`inspector stacks PID`, {count:,} ranks", command(BIN / "inspector", "stacks", pid), "s", limit
        )
    with job([str(threads), str(count)]) as pid:
        yield Measurement(f"`eu-stack -s -p PID`, {count:,} threads", command("eu-stack", "-s", "-p", pid), "s")
    py_spy = which("py-spy", path=f"{BIN}:{os.environ['PATH']}")
    if py_spy is not None:
        with job([sys.executable, "-c", PYTHON_THREADS, str(count)]) as pid:
            spent = command(py_spy, "dump", "--pid", pid)
            yield Measurement(f"`py-spy dump --pid PID`, {count:,} threads of Python", spent, "s")


def command(*words: object) -> float:
    """Seconds of processor time of the best run; the first fills caches."""
    return min(measured([str(word) for word in words])[0] for _ in range(1 + TURNS))


def walked(pid: int) -> tuple[float, int]:
    """Seconds of processor time and frames of the best walk through all suspended ranks, rank table included.

    The first, which opens files, doesn't count.
    """
    target = LiveTarget(pid)
    seconds, frames = [], 0
    for _ in range(1 + TURNS):
        start = time.process_time()
        moment = ProcessView(target, decode(target))
        suspended = [rank for rank in moment.table.ranks if rank.state != RUNNING]
        stacks = [walked for _, walked in moment.walker.stacks(suspended) if isinstance(walked, UnwoundStack)]
        seconds.append(time.process_time() - start)
        frames = sum(len(stack.calls) for stack in stacks)
    return min(seconds[1:]), frames


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
