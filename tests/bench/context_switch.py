"""What it costs to leave one rank for another, against a bare swap of registers, and what of it the registry costs.

Compiles tests/bench/programs/context_switch.c with the runtime's own objects; it measures all three in one process.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

from tests.bench.result import Measurement, Result
from tests.support.running import ROOT

SOURCE = Path(__file__).resolve().parent / "programs" / "context_switch.c"
HOOKS = ROOT / "runtime-hooks"
OBJECTS = ROOT / "build" / "runtime" / "objects"
PROGRAMS_OBJECTS = ("rankrun.c.o", "rankmpir.c.o", "mpi_module.o")  # not of the library
LARGEST_RATIO = 2.0
LARGEST_PUBLISHING = 2.0


def run() -> Result:
    times = measured()
    bare, published, rank = (median(times[name]) for name in ("bare", "published", "rank"))
    return Result(
        "Context switch",
        "Two ranks of one processing element take turns, 400,000 switches in each of 15 rounds; medians.",
        (
            Measurement("bare swap of registers and control words", bare, "ns"),
            Measurement("a switch between two ranks", rank, "ns"),
            Measurement("a switch, relative to the bare swap", rank / bare, "x", LARGEST_RATIO),
            Measurement("the registry's stores", published - bare, "ns", LARGEST_PUBLISHING),
        ),
    )


def source_of(made: Path) -> Path:
    """Of an object file; it may be gone, since `make` leaves old objects where they are."""
    return HOOKS / made.relative_to(OBJECTS).with_suffix("")


def measured() -> dict[str, list[float]]:
    """Nanoseconds per switch of every round, by what was measured."""
    objects = [path for path in sorted(OBJECTS.rglob("*.o")) if path.name not in PROGRAMS_OBJECTS]
    objects = [path for path in objects if "libc_state" not in path.parts and source_of(path).exists()]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "context_switch"
        includes = [f"-I{HOOKS / part}" for part in ("include", "embedded")]
        command = ["gcc", "-O2", "-std=gnu11", *includes, SOURCE, *objects, "-o", program, "-lstdc++", "-lm", "-ldl"]
        subprocess.run([str(word) for word in command], check=True)
        printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    times = defaultdict(list)
    for line in printed.splitlines():
        name, value = line.split()
        times[name].append(float(value))
    return times
