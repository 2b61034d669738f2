"""LLDB with the extension on jobs of 64 and of 1,000 ranks whose program has 4,000 functions in one compilation unit.

Compares with plain LLDB on the same job, in one run. The time per stop is that of single steps of the rank that runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.gdb_ranks import TIMEOUT, compile_source, job, rankrun, ranks_source
from tests.bench.result import Measurement, Result
from tests.conftest import BIN, ROOT

FEW, MANY, STEPS, REPEAT = 64, 1_000, 20, 3
SCRIPT = """
import json, os, time
import lldb

def __lldb_init_module(debugger, names):
    debugger.SetAsync(False)
    process = debugger.GetSelectedTarget().GetProcess()
    times, threads = [], 0
    for command in json.loads(os.environ["COMMANDS"]):
        result = lldb.SBCommandReturnObject()
        context = lldb.SBExecutionContext(process.GetSelectedThread().GetSelectedFrame())
        start = time.perf_counter()
        debugger.GetCommandInterpreter().HandleCommand(command, context, result, False)
        times.append(time.perf_counter() - start)
        assert result.Succeeded(), command + ": " + str(result.GetError())
    with open(os.environ["TIMES"], "w") as file:
        json.dump([times, process.GetNumThreads()], file)
"""


@dataclass(frozen=True)
class Cost:
    """What one LLDB took: seconds in all and per command, and how many threads it showed at the end."""

    seconds: float
    times: tuple[float, ...]
    threads: int

    @property
    def step(self) -> float:
        """Seconds per stop: the mean of the last steps."""
        return sum(self.times[-STEPS:]) / STEPS


def run() -> Result:
    steps = ["thread step-inst"] * STEPS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "ranks"
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        with job([*rankrun(FEW), str(program)]) as pid:
            plain = lldb(place, pid, [])
            backtrace = lldb(place, pid, [load(), "rank bt 5"])
            printed = lldb(place, pid, [load(), "rank print my_rank"])
        with job([*rankrun(MANY), str(program)]) as pid:
            bare = lldb(place, pid, steps)
            some = lldb(place, pid, [load(), "rank bt 5", *steps])
            every = lldb(place, pid, [load(), f"rank threads --most {MANY}", "thread list", *steps], repeat=1)
            all_ranks = lldb(place, pid, [load(), "rank bt all", "rank print my_rank"], repeat=1)
    return Result(
        "LLDB on many ranks",
        f"{FEW} and {MANY:,} ranks in one process; LLDB attaches anew for every line, the best of {REPEAT}.",
        (
            Measurement(f"attach, plain LLDB, {FEW} ranks", plain.seconds, "s"),
            Measurement("import and first `rank bt`, beyond plain attach", backtrace.seconds - plain.seconds, "s", 0.5),
            Measurement(f"`rank print` in {FEW} ranks", printed.times[-1], "s"),
            Measurement(f"a stop, plain LLDB, {MANY:,} ranks", bare.step, "s"),
            Measurement(
                f"a stop, {some.threads} of the ranks are threads, beyond plain", some.step - bare.step, "s", 0.3
            ),
            Measurement(f"a stop, {every.threads} ranks are threads, beyond plain", every.step - bare.step, "s", 0.3),
            Measurement(f"`rank bt all` of {MANY:,}", all_ranks.times[1], "s"),
            Measurement(f"`rank print` in {MANY:,} ranks", all_ranks.times[2], "s"),
        ),
    )


def load() -> str:
    return f"command script import {ROOT / 'lldbext'}"


def lldb(folder: Path, pid: int, commands: Sequence[str], repeat: int = REPEAT) -> Cost:
    return min((one_lldb(folder, pid, commands) for _ in range(repeat)), key=lambda cost: cost.seconds)


def one_lldb(folder: Path, pid: int, commands: Sequence[str]) -> Cost:
    script, times = folder / "in_lldb.py", folder / "times.json"
    script.write_text(SCRIPT)
    words = [shutil.which("lldb-19") or "lldb", "-x", "-b", "-p", str(pid), "-o", f"command script import {script}"]
    start = time.perf_counter()
    done = subprocess.run(
        words,
        env={**os.environ, "COMMANDS": json.dumps(commands), "TIMES": str(times)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    if not times.exists():
        raise RuntimeError(f"LLDB failed on {commands}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    each, threads = json.loads(times.read_text())
    times.unlink()
    return Cost(seconds, tuple(each), threads)
