"""Stock AMPI, untouched, under every method: what is found against the addresses that the program prints itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import decode as ampi
from pieglobalsfind.model import Rebase
from pieglobalsfind.targets import open_target
from tests.support.charm.jobs import AMPICC, BOTH, METHODS, RANKS, SOURCES, Running, build, running
from tests.support.debuggers import find_gdb
from tests.support.running import ROOT

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
PROGRAMS = [(method, language) for language in ("c", "cpp", "f90") for method in METHODS]


@pytest.fixture(scope="module", params=PROGRAMS, ids=["-".join(program) for program in PROGRAMS])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Running]]:
    method, language = request.param
    folder = tmp_path_factory.mktemp(f"{method}-{language}")
    build(folder, method, language)
    with running(folder) as up:
        yield method, language, up


def _run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_addresses_belong_to_the_ranks_that_print_them(job: tuple[str, str, Running]) -> None:
    method, language, up = job
    name = "state::g_rank" if language == "f90" else "g_rank"
    for rank, truth in up.truth.items():
        found = _run("pieglobalsfind", "--pid", str(up.pid), truth.global_address, truth.stack_address).splitlines()
        owner = "no rank  shared" if method == "none" else f"rank {rank}  "
        assert owner in found[0]
        assert f"{name}+0x0" in found[0]
        assert f"rank {rank}  stack" in found[1]


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
def test_what_the_loader_keeps_once_is_told_where_it_is(with_hook: bool, tmp_path: Path) -> None:
    """Under fs all copies of the program are in one namespace, and share a C++ inline variable."""
    build(tmp_path, "fs", "cpp", with_hook, SOURCES["cpp"].replace("PRIVATE int", "inline int"))
    with running(tmp_path) as up:
        (address,) = {truth.global_address for truth in up.truth.values()}
        told = json.loads(_run("inspector", "globals", str(up.pid), "g_rank", "--json"))
        command = [str(find_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(up.pid)]
        for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", "rank print &g_rank", "rank print g_rank"):
            command += ["-ex", one]
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=400, stdin=subprocess.DEVNULL, check=False
        ).stdout
        owner = _run("pieglobalsfind", "--pid", str(up.pid), address)
        value = int.from_bytes(open_target(pid=up.pid).read(int(address, 16), 4), "little")
    for rank in range(RANKS):
        assert f"\n{rank}: (int *) {address}" in said and f"\n{rank}: {value}\n" in said, said
    assert f'"value": "{value}"' in json.dumps(told), told
    assert "no rank" in owner and "several ranks share it" in owner and "g_rank+0x0" in owner, owner


def test_who_runs_and_who_waits_in_which_call(job: tuple[str, str, Running]) -> None:
    _, _, up = job
    found = {load["rank"]: load for load in json.loads(_run("inspector", "ranks", str(up.pid), "--json"))["ranks"]}
    assert sorted(found) == list(range(RANKS))
    assert found[0]["state"] == "running"
    for rank in range(1, RANKS):
        assert (found[rank]["state"], found[rank]["waiting"]["call"]) == ("blocked", "MPI_Recv")


def test_stacks_lead_to_the_line_that_called(job: tuple[str, str, Running]) -> None:
    _, language, up = job
    source = (up.folder / f"prog.{language}").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "MPI_Recv" in text)
    found = json.loads(_run("inspector", "stacks", str(up.pid), "--rank", "1-3", "--json"))
    (stack,) = found["stacks"]
    assert stack["ranks"] == "1-3"
    assert (f"prog.{language}", line) in {(one["file"].rpartition("/")[2], one["line"]) for one in stack["calls"]}
    assert stack["calls"][-1]["function"] in ("MPI_Recv", "mpi_recv_")


def test_ranks_are_chosen_by_the_program_s_own_function(job: tuple[str, str, Running]) -> None:
    """Fortran's names of calls are in the program's own copies under pie and pip, and are none of its functions."""
    _, language, up = job
    name = "mpi_main" if language == "f90" else "AMPI_Main"
    found = json.loads(_run("inspector", "stacks", str(up.pid), "--rank", f"/{name}/", "--json"))
    assert found["stacks"][0]["ranks"] == "1-3"


def test_a_core_file_tells_the_same(job: tuple[str, str, Running]) -> None:
    method, _, up = job
    gcore = shutil.which("gcore")
    if gcore is None:
        pytest.skip("gcore is not installed")
    core = up.folder / "core"
    subprocess.run([gcore, "-o", str(core), str(up.pid)], timeout=120, check=True, capture_output=True)
    name = f"{core}.{up.pid}"
    rows = _run("inspector", "ranks", name).splitlines()
    assert any(re.match(r"0\s+running", row) for row in rows)
    assert any(re.match(r"1-3\s+blocked\s+MPI_Recv", row) for row in rows)
    if method != "none":
        for rank, truth in up.truth.items():
            assert f"rank {rank}  " in _run("pieglobalsfind", "--core", name, truth.global_address)


def test_a_stripped_loader_still_tells_the_ranks(job: tuple[str, str, Running], tmp_path: Path) -> None:
    """What it exports and its threads are enough: numbers, copies, stacks and calls, running or in a core file."""
    method, language, up = job
    if language == "cpp":
        pytest.skip("C and Fortran are run for it, to save time")
    if method == "swap":
        pytest.skip("without .symtab threads of a program at a fixed address are not found, and a sentence says so")
    folder = shutil.copytree(up.folder, tmp_path / "stripped", ignore=shutil.ignore_patterns("core*"))
    subprocess.run(["strip", "prog"], cwd=folder, check=True, timeout=60)
    with running(folder) as stripped:
        for rank, truth in stripped.truth.items():
            words = (truth.global_address, truth.stack_address)
            owners = _run("pieglobalsfind", "--pid", str(stripped.pid), *words).splitlines()
            assert ("no rank  shared" if method == "none" else f"rank {rank}  ") in owners[0]
            assert f"rank {rank}  stack" in owners[1]
        core = folder / "core"
        subprocess.run(["gcore", "-o", str(core), str(stripped.pid)], timeout=120, check=True, capture_output=True)
        table = decode(open_target(core=f"{core}.{stripped.pid}"))
        stacks = json.loads(_run("inspector", "stacks", f"{core}.{stripped.pid}", "--rank", "1-3", "--json"))["stacks"]
    assert (table.method, table.rank_count, table.warnings) == ("pie" if method == BOTH else method, RANKS, ())
    assert table.evidence == ampi.EVIDENCE_STRIPPED
    assert [isinstance(rank.context, int) for rank in table.ranks] == [False, True, True, True]
    (stack,) = stacks
    # Only the exported name that stands first is known of a function then: MPI_Recv, or PMPI_Recv.
    assert stack["ranks"] == "1-3" and stack["calls"][-1]["function"].strip("Pp_").lower() == "mpi_recv"


def test_the_fortran_runtime_is_copied_with_the_program(job: tuple[str, str, Running]) -> None:
    """Under pie and pip ranks have copies of libgfortran and libquadmath of their own; under fs they share them."""
    method, language, up = job
    table = decode(open_target(pid=up.pid))
    names = {elf_object.path.rpartition("/")[2].partition(".so")[0] for elf_object in table.objects}
    copied = language == "f90" and method in ("pie", BOTH, "pip")
    assert ({"libgfortran", "libquadmath"} <= names) == copied
    if copied:
        for rank in table.ranks:  # beside them it has blocks of thread-local variables
            assert sum(isinstance(placement, Rebase) for placement in rank.placements) == len(table.objects)
