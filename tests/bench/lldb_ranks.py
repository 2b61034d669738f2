"""LLDB with the extension on jobs of 64 and of 1,000 ranks whose program has 4,000 functions in one compilation unit.

Compares with plain LLDB on the same job, in one run. The first `rank bt` is typed, as users do; what a command of many
takes alone is measured by a script. The time per stop is that of single steps of the rank that runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.gdb_ranks import TIMEOUT, compile_source, job, rankrun, ranks_source
from tests.bench.result import Measurement, Result
from tests.support.debuggers import find_lldb
from tests.support.running import BIN, ROOT

FEW, MANY, STEPS, REPEAT = 64, 1_000, 20, 3
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
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
        load = f"command script import {installed(place)}"
        program = place / "ranks"
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        with job([*rankrun(FEW), str(program)]) as pid:
            plain = typed(pid, [])
            backtrace = typed(pid, [load, "rank bt 5"], "#12 ")
            listed = typed(pid, [load, "rank bt 5", "thread list"], f"rank {FEW - 1}: running")
            printed = lldb(place, pid, [load, "rank print my_rank"])
        with job([*rankrun(MANY), str(program)]) as pid:
            bare = lldb(place, pid, steps)
            some = lldb(place, pid, [load, "rank bt 5", *steps])
            every = lldb(place, pid, [load, f"rank threads --most {MANY}", "thread list", *steps], repeat=1)
            all_ranks = lldb(place, pid, [load, "rank bt all", "rank print my_rank"], repeat=1)
    return Result(
        "LLDB on many ranks",
        f"{FEW} and {MANY:,} ranks in one process; LLDB attaches anew for every line, the best of {REPEAT}.",
        (
            Measurement(f"attach, plain LLDB, {FEW} ranks", plain, "s"),
            Measurement("import and first `rank bt`, beyond plain attach", backtrace - plain, "s", 0.5),
            Measurement("LLDB's own `thread list` after it, beyond that", listed - backtrace, "s"),
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


def installed(folder: Path) -> Path:
    """The extension as a user has it, beside whose files Python's bytecode stands from the first time on."""
    for package in ("lldbext", "pieglobalsfind"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "lldbext"


def typed(pid: int, commands: Sequence[str], expected: str = "") -> float:
    """The seconds that an LLDB takes for commands, from its start to its end; `expected` is in what it says."""
    words = [*attach(pid), *(word for command in commands for word in ("-o", command))]
    seconds, said = min(timed(words, ENVIRONMENT) for _ in range(2 * REPEAT))
    if expected not in said:
        raise RuntimeError(f"LLDB failed on {commands}: {said[-2000:]}")
    return seconds


def attach(pid: int) -> list[str]:
    return [str(find_lldb()), "-x", "-b", "-p", str(pid)]


def timed(words: Sequence[str], environment: Mapping[str, str]) -> tuple[float, str]:
    """Seconds of wall time, and what was printed."""
    start = time.perf_counter()
    done = subprocess.run(
        words,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    return time.perf_counter() - start, done.stdout


def lldb(folder: Path, pid: int, commands: Sequence[str], repeat: int = REPEAT) -> Cost:
    return min((one_lldb(folder, pid, commands) for _ in range(repeat)), key=lambda cost: cost.seconds)


def one_lldb(folder: Path, pid: int, commands: Sequence[str]) -> Cost:
    script, times = folder / "in_lldb.py", folder / "times.json"
    script.write_text(SCRIPT)
    words = [*attach(pid), "-o", f"command script import {script}"]
    seconds, said = timed(words, {**ENVIRONMENT, "COMMANDS": json.dumps(commands), "TIMES": str(times)})
    if not times.exists():
        raise RuntimeError(f"LLDB failed on {commands}: {said[-3000:]}")
    each, threads = json.loads(times.read_text())
    times.unlink()
    return Cost(seconds, tuple(each), threads)
