"""How long stock AMPI's ranks take to be found without the hook module, with the loader's `.symtab` and without.

Takes `CHARM_HOME`, as tests/charm does; measures nothing without it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from pieglobalsfind.decoders import decode
from pieglobalsfind.targets import open_target
from tests.bench.result import Measurement, Result
from tests.support.charm.jobs import AMPICC, METHODS, RANKS, build, running

TITLE = "Finding the ranks of stock AMPI"
TURNS = 15
LIMIT_MS = 100.0


def run() -> Result:
    if not AMPICC:
        return Result(TITLE, "Not measured: CHARM_HOME is not set.", ())
    measurements = []
    for method in METHODS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            build(folder, method, "c")
            measurements.append(Measurement(f"`{method}`", discovery(folder), "ms", LIMIT_MS))
            subprocess.run(["strip", "prog"], cwd=folder, check=True, timeout=60)
            measurements.append(Measurement(f"`{method}`, stripped", discovery(folder), "ms", LIMIT_MS))
    return Result(
        TITLE,
        f"{RANKS} ranks of a running job in C, without the hook module: the whole table, from the memory map to saved "
        f"registers. Processor time; the best of {TURNS}.",
        tuple(measurements),
    )


def discovery(folder: Path) -> float:
    """Milliseconds of processor time."""
    with running(folder) as up:
        return min(once(up.pid) for _ in range(TURNS))


def once(pid: int) -> float:
    start = time.process_time()
    table = decode(open_target(pid=pid))
    spent = time.process_time() - start
    assert len(table.ranks) == RANKS
    return 1000 * spent
