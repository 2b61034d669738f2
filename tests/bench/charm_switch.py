"""What the hook module adds to a context switch of stock AMPI: one program with and without it, in turns.

Takes `CHARM_HOME`, as tests/charm does; measures nothing without it.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from statistics import median

from tests.bench.result import Measurement, Result
from tests.support.charm.jobs import AMPICC, build

SOURCE = Path(__file__).resolve().parent / "programs" / "charm_switch.c"
RANKS = 4
TURNS = 8  # runs of either program
LARGEST_RATIO = 1.03  # what two runs of the same program differ by


def run() -> Result:
    if not AMPICC:
        return Result("Context switch of stock AMPI", "Not measured: CHARM_HOME is not set.", ())
    plain, hooked = measured()
    return Result(
        "Context switch of stock AMPI",
        f"{RANKS} ranks (`pie`) of one processing element take turns, with the hook module and without it; medians of "
        f"{TURNS} runs in turns, the best of 5 rounds of each.",
        (
            Measurement("a switch, stock", median(plain), "ns"),
            Measurement("a switch, with the hook module", median(hooked), "ns"),
            Measurement("the one relative to the other", median(hooked) / median(plain), "x", LARGEST_RATIO),
        ),
    )


def measured() -> tuple[list[float], list[float]]:
    """Nanoseconds per switch of each run, without and with the hook."""
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as hooked:
        build(Path(plain), "pie", "c", source=SOURCE.read_text())
        build(Path(hooked), "pie", "c", with_hook=True, source=SOURCE.read_text())
        times: dict[str, list[float]] = {plain: [], hooked: []}
        for _ in range(TURNS):
            for folder, found in times.items():
                found.append(switch_of(folder))
        return times[plain], times[hooked]


def switch_of(folder: str) -> float:
    command = ["./prog", f"+vp{RANKS}"]
    printed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=120).stdout
    return min(float(line.split()[1]) for line in printed.splitlines() if line.startswith("SWITCH "))
