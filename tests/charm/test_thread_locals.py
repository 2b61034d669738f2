"""Thread-local variables under stock AMPI: each tool reads the bytes at the address that the rank itself prints."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, RANKS, SOURCES, Running, build, running
from tests.support.debuggers import find_gdb
from tests.support.gdb.places import make_core
from tests.support.running import ROOT

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
BOTH = ("-tlsglobals",)
CASES = {
    "pie": ("pie", "c", ()),  # one for all ranks of a kernel thread
    "pie and tls": ("pie", "c", BOTH),
    "pie and tls in C++": ("pie", "cpp", BOTH),
    "pie and tls in Fortran": ("pie", "f90", BOTH),  # one for all: its compiler takes the block that libc makes
    "pip": ("pip", "c", ()),
    "fs": ("fs", "c", ()),
    "pip with the hook": ("pip", "c", ()),
    "fs with the hook": ("fs", "c", ()),
}
KINDS = ("live", "core")


@pytest.fixture(scope="module", params=CASES)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    method, language, options = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    if language == "f90":
        build_fortran(folder)
    else:
        source = SOURCES["c"].replace("PRIVATE int g_rank", "__thread long before = 7; __thread int g_rank")
        build(folder, method, language, "hook" in request.param, source, more=options)
    with running(folder) as up:
        yield up


def build_fortran(folder: Path) -> None:
    """By hand: under -pieglobals AMPI's compiler drops -fopenmp, by which Fortran has thread-local variables."""
    compiler = str(Path(AMPICC).with_name("ampif90"))
    Path(folder, "prog.f90").write_text(SOURCES["f90"])
    compiled = [compiler, "-g", *BOTH, "-fopenmp", "-fPIC", "-c", "prog.f90", "-o", "own.o"]
    for command in (compiled, [compiler, "-g", "-pieglobals", *BOTH, "own.o", "-o", "prog"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=400)


def target(job: Running, kind: str, tmp_path: Path) -> list[object]:
    """How GDB is told what to look at."""
    return ["-p", job.pid] if kind == "live" else [job.folder / "prog", make_core(job.pid, tmp_path)]


def run(*words: object, status: int = 0) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def value_at(job: Running, address: str) -> int:
    """What the process has there, read by the kernel."""
    with Path(f"/proc/{job.pid}/mem").open("rb") as memory:
        memory.seek(int(address, 16))
        return int.from_bytes(memory.read(4), sys.byteorder, signed=True)


def expected(job: Running) -> dict[int, int]:
    return {rank: value_at(job, truth.global_address) for rank, truth in job.truth.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_inspector_reads_each_ranks_own(job: Running, kind: str, tmp_path: Path) -> None:
    asked = ("globals", target(job, kind, tmp_path)[-1], "*g_rank", "--json")
    (variable,) = json.loads(run(sys.executable, "-m", "inspector", *asked))["globals"]
    values = {}
    for group in variable["groups"]:
        for part in group["ranks"].split(","):
            first, _, last = part.partition("-")
            values.update(dict.fromkeys(range(int(first), int(last or first) + 1), int(group["value"])))
    assert values == expected(job)
    assert (variable["verdict"] == "shared") == (len({truth.global_address for truth in job.truth.values()}) < RANKS)


@pytest.mark.parametrize("kind", KINDS)
def test_gdb_prints_each_ranks_own(job: Running, kind: str, tmp_path: Path) -> None:
    """With a rank selected, for all ranks, and for none: then nothing, and not another module's variable."""
    commands = [f"source {ROOT}/gdbext/rank.py"]
    name = "'state::g_rank'" if Path(job.folder, "prog.f90").exists() else "g_rank"
    for rank in range(RANKS):
        commands += [f"rank {rank}", f'with language c -- printf "%d %p\\n", {name}, &{name}']
    words = [word for command in (*commands, "rank none", f"print {name}") for word in ("-ex", command)]
    quietly = ("-nx", "-q", "-batch", "-iex", "set debuginfod enabled off")
    shown = run(str(find_gdb()), *quietly, *target(job, kind, tmp_path), *words, status=1)
    for rank, value in expected(job).items():
        assert f"\n{value} {job.truth[rank].global_address}\n" in shown
    assert "\n$1 = " not in shown


def test_an_address_is_thread_local(job: Running) -> None:
    for rank, truth in job.truth.items():
        (found,) = json.loads(
            "[" + run(sys.executable, "-m", "pieglobalsfind", "--pid", job.pid, truth.global_address, "--json") + "]"
        )
        assert found["kind"] == "tls" and found["rank"] in (rank, None)
