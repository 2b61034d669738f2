"""What each method of privatization costs, relative to `none`: start-up, a switch, a loop over globals, memory.

Compiles tests/bench/programs/{methods,large}.c for every method; methods take turns, so that a change of the machine's
speed meets all of them.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.result import Measurement, Result
from tests.methods.matrix import IS_PROCESS, METHODS
from tests.support.running import Job, built

PROGRAMS = Path(__file__).resolve().parent / "programs"
RANKS = 8
TURNS = 5
THREAD_LOCAL = ("tls", "tls-word")
OWN_THREADS = ("pipthread", *IS_PROCESS)  # their ranks don't switch: each has a kernel thread
WITHIN = 12.0  # ns that a switch may take beyond that of `none`
LOOP = 1.02
COPIED = 1.5
LARGE_RANKS = 64


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        programs = {method: compiled(method, "methods.c", Path(folder)) for method in METHODS}
        large = compiled("pie", "large.c", Path(folder))
        return Result(
            "Methods of privatization",
            f"{RANKS} ranks for start-up and memory, two for a switch, one for the loop (a seven-point stencil with "
            f"every variable of the inner loop a global); ratios to `none`, medians or best of {TURNS} turns. Start-up "
            f"of pie with {LARGE_RANKS} ranks of 14 MB is held against copying the same bytes into fresh memory.",
            (
                *startup(programs),
                *switches(programs),
                *loops(programs),
                *memory(programs, Path(folder)),
                copying(large),
            ),
        )


def compiled(method: str, name: str, folder: Path) -> Path:
    program = folder / f"{name}.{method}"
    private = ["-DPRIVATE=__thread"] if method in THREAD_LOCAL else []
    command = [built("rankcc"), f"--method={method}", "-O2", *private, PROGRAMS / name, "-o", program]
    subprocess.run([str(word) for word in command], check=True)
    return program


def rankrun(method: str, ranks: int, program: Path, *arguments: str) -> str:
    command = [built("rankrun"), "-n", ranks, "--method", method, program, *arguments]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


def startup(programs: dict[str, Path]) -> Iterator[Measurement]:
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(2 * TURNS):
        for method in METHODS:
            start = time.perf_counter()
            rankrun(method, RANKS, programs[method])
            times[method].append(time.perf_counter() - start)
    base = median(times["none"])
    yield Measurement("start-up and end, none", base * 1000, "ms")
    for method in METHODS[1:]:
        yield Measurement(f"start-up and end, {method}", median(times[method]) / base, "x")


def switches(programs: dict[str, Path]) -> Iterator[Measurement]:
    wanted = [method for method in METHODS if method not in OWN_THREADS]
    times: dict[str, list[float]] = {method: [] for method in wanted}
    pointer: list[float] = []
    for _ in range(TURNS):
        for method in wanted:
            times[method] += map(float, rankrun(method, 2, programs[method], "switch").split())
        pointer += map(float, rankrun("none", 1, programs["none"], "pointer").split())
    base = median(times["none"])
    yield Measurement("a switch, none", base, "ns")
    for method in wanted[1:]:
        limit = None if method == "swap" else WITHIN
        yield Measurement(f"a switch, {method}, beyond none", median(times[method]) - base, "ns", limit)
    yield Measurement("of tls, the processor's wrfsbase alone", median(pointer), "ns")


def loops(programs: dict[str, Path]) -> Iterator[Measurement]:
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(TURNS):
        for method in METHODS:
            times[method].append(float(rankrun(method, 1, programs[method], "jacobi")))
    base = min(times["none"])
    yield Measurement("the loop, none", base, "ns per point")
    for method in METHODS[1:]:
        limit = LOOP if method in ("pie", "pip", "fs") else None
        yield Measurement(f"the loop, {method}", min(times[method]) / base, "x", limit)


def memory(programs: dict[str, Path], folder: Path) -> Iterator[Measurement]:
    for method in METHODS:
        few, many = (proportional(method, ranks, programs[method], folder) for ranks in (1, RANKS))
        yield Measurement(f"memory per rank, {method}", (many - few) / (RANKS - 1) / 1024, "KB")


def proportional(method: str, ranks: int, program: Path, folder: Path) -> int:
    """The job's share of the machine's memory (PSS), in bytes."""
    job = Job([str(word) for word in (built("rankrun"), "-n", ranks, "--method", method, program, "hold")], folder)
    try:
        job.wait_for("ready")
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        # processes that share all memory each show all of it
        return (
            max(share(job.pid), *map(share, map(int, children)), 0)
            if method == "pipprocess"
            else sum(map(share, (job.pid, *map(int, children))))
        )
    finally:
        job.close()


def share(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def copying(large: Path) -> Measurement:
    """Start-up of many large ranks less that of one, against copying."""
    ratios = []
    for _ in range(TURNS):
        copied = float(rankrun("none", 1, large, "copy", str(LARGE_RANKS - 1)))
        times = []
        for ranks in (1, LARGE_RANKS):
            start = time.perf_counter()
            rankrun("pie", ranks, large)
            times.append(time.perf_counter() - start)
        ratios.append((times[1] - times[0]) / copied)
    return Measurement(f"{LARGE_RANKS} ranks x 14 MB under pie, against copying", median(ratios), "x", COPIED)
