"""How long a thousand ranks of SimGrid's SMPI take: to be found, with all stacks, and plain GDB to attach.

Takes what Debian's libsimgrid-dev installs; measures nothing without it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from pieglobalsfind.decoders import decode
from pieglobalsfind.targets import open_target
from tests.bench.result import Measurement, Result
from tests.support.running import Job
from tests.support.smpi.jobs import SMPIRUN, SOURCES, command, process_of

TITLE = "A thousand ranks of SimGrid's SMPI"
RANKS = 1000
TURNS = 3
DISCOVERY, STACKS = 0.5, 1.0  # seconds of processor time


def run() -> Result:
    if not SMPIRUN:
        return Result(TITLE, "Not measured: smpirun is not installed.", ())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["smpicc", "-g", "-O0", SOURCES / "truth.c", "-o", folder / "truth"], check=True, timeout=60)
        job = Job(command(folder, RANKS, folder / "truth"), folder)
        try:
            job.wait_for("ready")
            return Result(
                TITLE, f"{RANKS} ranks that wait. Processor time; the best of {TURNS}.", measured(process_of(job))
            )
        finally:
            job.close()


def measured(pid: int) -> tuple[Measurement, ...]:
    stacks = [sys.executable, "-m", "inspector", "stacks", str(pid)]
    return (
        Measurement("the ranks are found", best(lambda: found(pid)), "s", DISCOVERY),
        Measurement("`inspector stacks --nonblocking`", best(lambda: spent([*stacks, "--nonblocking"])), "s", STACKS),
        Measurement("`inspector stacks`, with a pause", best(lambda: spent(stacks)), "s", STACKS),
        Measurement("plain GDB attaches", best(lambda: spent(["gdb", "-nx", "-batch", "-p", str(pid)])), "s"),
    )


def best(once: Callable[[], float]) -> float:
    return min(once() for _ in range(TURNS))


def found(pid: int) -> float:
    start = time.process_time()
    table = decode(open_target(pid=pid))
    taken = time.process_time() - start
    assert len(table.ranks) == RANKS
    return taken


def spent(words: Sequence[str]) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(words, check=True, timeout=600, stdin=subprocess.DEVNULL, capture_output=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
