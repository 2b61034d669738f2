"""Random walks: the same commands, drawn by a seed, in process k under MPICH and in rank k among other ranks.

Others come by breakpoints whose conditions are false for them, on the same kernel thread and on others, while rank k
steps, finishes and looks around. What GDB says must be the same, addresses and numbers apart.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.support.gdb.session import EXTENSION
from tests.support.mpich import mpiexec
from tests.support.oracle.normalize import normalize
from tests.support.oracle.program import code_flags
from tests.support.running import PROGRAMS, built
from tests.support.sharing import Shared

SOURCES = PROGRAMS / "walks"
RANKS = 4
STEPS = 60
SEEDS = range(int(os.environ.get("RANKLENS_WALKS", "1")))
TIMEOUT = 240
ZEROED = "-ftrivial-auto-var-init=zero"  # variables that have no value yet are 0 on both sides
# Fortran's code is not the same on both sides there: numbers in mpif.h differ.
OPTIMIZED = ((7, "-O2"), (5, "-O1"))
pytestmark = pytest.mark.skipif(
    subprocess.run(["gcc", ZEROED, "-E", "-x", "c", os.devnull], capture_output=True, check=False).returncode != 0,
    reason=f"this gcc has no {ZEROED}: variables that have no value yet would differ",
)
SETTINGS = (
    "pagination off", "confirm off", "width 0", "height 0", "breakpoint pending on", "style enabled off",
    "startup-with-shell off", "debuginfod enabled off",
)  # fmt: skip
TOLD_BESIDES = re.compile(
    r"^0x[0-9a-f]+ in \?\? \(\)\n\[Rank \d+ runs here\]\n#0  |^\[Watchpoint \d+ continues as .*\n|-location (?=\w)"
    r"|^\[Switching to [Tt]hread .*\]\n|^\[Rank \d+ runs here\]\n#0 .*\n(?:\d+\t.*\n)?"
    r"|^warning: location number not found for breakpoint -\d+ .*\n"  # of GDB 13 with several inferiors: docs/gdb.md
    r"|^\n?Thread \d+ \"\w+\" hit |^Run till exit from #\d+",
    re.M,
)


@dataclass(frozen=True)
class Route:
    """A program, and what can be asked in it."""

    source: str
    compilers: tuple[str, str]
    begin: str
    places: tuple[str, ...]
    expressions: tuple[str, ...]
    watched: tuple[str, ...]  # what MPI does not write
    others: tuple[str, ...]  # where others come by, false wherever it is tested


CXX = Route(
    "paths.cpp",
    ("mpicxx.mpich", "rankcxx"),
    "turn",
    ("pass_on", "descend", "paths.cpp:98", "field::Plain::weight"),
    (
        "my_rank", "total", "depth_reached", "field::Twofold::built", "plain", "twofold", "cells", "word", "got",
        "mean", "n", "below", "sum", "value", "*cell", "cells.size()", "my_rank * 2 + ranks", "deep",
        "'paths.cpp'::depth_reached",
    ),
    ("total", "depth_reached", "field::Twofold::built", "total * 2 + my_rank", "sum", "below", "plain.id", "total - 3"),
    ("descend if my_rank == {other} && n == 77", "pass_on if value == -5", "paths.cpp:54 if inner.id == my_rank + 90"),
)  # fmt: skip
# In optimized code GCC 14 has line 54 begin in a function that is inlined there, which knows no `inner`.
OPTIMIZED_CXX = replace(CXX, others=(*CXX.others[:2], "paths.cpp:54 if my_rank == {other} + 90"))
FORTRAN = Route(
    "paths.f90",
    ("mpifort.mpich", "rankfort"),
    "field::turn",
    ("field::pass_on", "field::descend", "paths.f90:64", "field::weight"),
    (
        "my_rank", "total", "reached", "means", "means(2)", "last", "last%parts", "one", "one%id", "list", "got",
        "deep", "n", "below", "value", "field::total", "my_rank * 2 + ranks",
    ),
    ("total", "reached", "below"),
    (
        "field::descend if my_rank == {other} .and. n == 77", "field::pass_on if value == -5",
        "paths.f90:68 if number == -9",
    ),
)  # fmt: skip
# What has lines on one side only, and what says how much was above the stack before.
SKIPPED = ("-gfi */malloc.c", "-gfi malloc.c", "-fu clear_stack", "-fu field::clear_stack")
MOVES = ("step",) * 5 + ("next",) * 6 + ("finish", "finish", "until", "stepi", "nexti")
LOOKS = ("up", "down", "bt", "info locals", "info args", "info source", "info line", "info symbol $pc", "display")


def commands(route: Route, seed: int, watches: float = 0.0) -> list[str]:
    """The same for both sides; `watches` is how likely it is that a variable is watched."""
    chance = random.Random(seed)
    found = []
    for _ in range(STEPS):
        kind = chance.random()
        if kind < watches:
            found += [f"watch {chance.choice(route.watched)}", chance.choice(LOOKS), "continue", "continue", "unwatch"]
        elif kind < 0.45:
            found.append(chance.choice(MOVES))
        elif kind < 0.55:
            found.append(f"{chance.choice(('advance', 'until'))} {chance.choice(route.places)}")
        elif kind < 0.8:
            found.append(f"print {chance.choice(route.expressions)}")
        else:
            found.append(chance.choice(LOOKS))
    return found[:STEPS]


def compiled(route: Route, level: str, compiler: str, shared: Shared, folder: Path) -> Path:
    def make(into: Path) -> None:
        suffix = Path(route.source).suffix
        modules = (f"-J{into}",) if suffix == ".f90" else ("-std=c++17",)
        command = [compiler, *code_flags(level), ZEROED, *modules, route.source, "-o", str(into / "paths")]
        subprocess.run(command, cwd=SOURCES, check=True, timeout=120)

    return Path(shutil.copy(shared.made(f"{route.source}{level}.{Path(compiler).name}.walk", make) / "paths", folder))


def debugger(
    gdb: Path, folder: Path, prepare: list[str], program: list[str], asked: list[str], several: bool
) -> list[str]:
    """The command that walks; the plan is in `folder`."""
    plan = {"commands": asked, "several": several, "answers": str(folder / "answers.json")}
    (folder / "plan.json").write_text(json.dumps(plan))
    words = [str(gdb), "-nx", "-q", "-batch", *(word for setting in SETTINGS for word in ("-iex", f"set {setting}"))]
    words += [word for one in SKIPPED for word in ("-ex", f"skip {one}")]
    words += [word for one in prepare for word in ("-ex", one)]
    return [*words, "-x", str(Path(__file__).parents[1] / "support" / "oracle" / "walking.py"), "--args", *program]


def walked(command: list[str], folder: Path) -> list[list[str]]:
    environment = {**os.environ, "RANKLENS_WALK": str(folder / "plan.json"), "LC_ALL": "C.UTF-8"}
    with (folder / "log").open("wb") as log:
        job = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            job.wait(TIMEOUT)
        finally:
            if job.poll() is None:
                os.killpg(job.pid, 9)
            job.wait()
    answers = folder / "answers.json"
    assert answers.exists(), (folder / "log").read_text(errors="replace")
    found: list[list[str]] = json.loads(answers.read_text())
    return found


def natively(
    gdb: Path, folder: Path, program: Path, route: Route, rank: int, processes: int, asked: list[str]
) -> list[list[str]]:
    """Process `rank` in GDB, the others without one; they walk as a job of as many `processes` does."""
    own = debugger(gdb, folder, [f"tbreak {route.begin}", "run"], [str(program), "1000"], asked, processes > 1)
    command = mpiexec()
    for number in range(RANKS):
        command += [*([":"] if number else []), "-n", "1", *(own if number == rank else [str(program), "1000"])]
    return walked(command, folder)


def virtually(
    gdb: Path, folder: Path, program: Path, route: Route, rank: int, processes: int, pes: int, asked: list[str]
) -> list[list[str]]:
    """All ranks in GDB, each process of the job an inferior."""
    other = (rank + 1) % RANKS
    prepare = [f"source {EXTENSION}", *(f"break {one.format(other=other)}" for one in route.others)]
    prepare += ["set detach-on-fork off", "set schedule-multiple on"] if processes > 1 else []
    prepare += [f"rank tbreak {route.begin} {rank}", "run"]
    spread = ["--procs", str(processes)] if processes > 1 else []
    launched = [str(built("rankrun")), "-n", str(RANKS), "--pes", str(pes), *spread, str(program), "1000"]
    return walked(debugger(gdb, folder, prepare, launched, asked, processes > 1), folder)


# The `main` that gfortran makes calls the main program; of a process GDB hides it in some languages' frames.
FORTRAN_MAIN = re.compile(r"^#\d+\s.*\bmain \(.*\) at \S+\.f90:\d+\n", re.M)


def comparable(text: str, route: Route) -> str:
    return re.sub(r"\s+\n", "\n", normalize(FORTRAN_MAIN.sub("", TOLD_BESIDES.sub("", text)), (route.source,)))


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("route", [CXX, FORTRAN], ids=["C++", "Fortran"])
def test_a_walk(route: Route, seed: int, processes: int, gdb: Path, shared: Shared, tmp_path: Path) -> None:
    walk(route, "-O0", seed, processes, gdb, shared, tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("seed", "level"), OPTIMIZED)
def test_a_walk_through_optimized_code(
    seed: int, level: str, processes: int, gdb: Path, shared: Shared, tmp_path: Path
) -> None:
    walk(OPTIMIZED_CXX, level, seed, processes, gdb, shared, tmp_path)


def walk(route: Route, level: str, seed: int, processes: int, gdb: Path, shared: Shared, tmp_path: Path) -> None:
    """The same walk on both sides, told alike."""
    # A change at the beginning of an inlined function GDB shows in it, if in a rank, and in a process before it.
    asked, rank = commands(route, seed, watches=0.05 if level == "-O0" else 0.0), seed % RANKS
    pes = 2 if processes > 1 else 2 + seed % 2  # at most as many as a process has ranks
    folders = [tmp_path / name for name in ("native", "virtual")]
    for folder in folders:
        folder.mkdir()
    programs = [
        compiled(route, level, name, shared, folder)
        for name, folder in zip((route.compilers[0], str(built(route.compilers[1]))), folders)
    ]
    native = natively(gdb, folders[0], programs[0], route, rank, processes, asked)
    virtual = virtually(gdb, folders[1], programs[1], route, rank, processes, pes, asked)
    assert len(native) == STEPS
    for number, ((command, expected), (_, actual)) in enumerate(zip(native, virtual)):
        lines = comparable(expected, route).splitlines(), comparable(actual, route).splitlines()
        assert lines[0] == lines[1], "\n".join(
            [
                f"after {[one for one, _ in native[:number]]}",
                command,
                *unified_diff(*lines, "process", "rank", lineterm=""),
            ]
        )
