"""The hook module linked into stock AMPI programs: its registry against what discovery without it finds."""

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
from pieglobalsfind.decoders.ampi.swapped_globals import STRIPPED, UNKNOWN
from pieglobalsfind.model import HOOK, Absent, Placement, Rank, RankTable, Rebase
from pieglobalsfind.targets import open_target
from tests.support.charm.jobs import AMPICC, BOTH, METHODS, RANKS, Running, build, running

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
PROGRAMS = [(method, "c") for method in METHODS] + [("pie", "cpp"), ("pie", "f90"), ("pip", "f90"), ("fs", "cpp")]


@pytest.fixture(scope="module", params=PROGRAMS, ids=["-".join(program) for program in PROGRAMS])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Running]]:
    method, language = request.param
    folder = tmp_path_factory.mktemp(f"{method}-{language}")
    build(folder, method, language, with_hook=True)
    with running(folder) as up:
        yield method, language, up


def _placements(table: RankTable, rank: Rank) -> dict[str, object]:
    """What a rank has, by file: numbers of objects may differ."""
    return {
        _file(table, placement): placement.copy if isinstance(placement, Rebase) else placement
        for placement in rank.placements
    }


def _file(table: RankTable, placement: Placement) -> str:
    number = getattr(placement, "object", None)
    return table.objects[number].path if isinstance(number, int) else ""


def test_the_registry_says_what_discovery_finds(job: tuple[str, str, Running]) -> None:
    method, _, up = job
    target = open_target(pid=up.pid)
    told, rank_table = decode(target), ampi.decode(target)
    assert rank_table is not None
    assert (told.evidence.tier, told.method, told.rank_count) == (HOOK, "pie" if method == BOTH else method, RANKS)
    assert (told.entry_function, told.entry_function_size) == (
        rank_table.entry_function,
        rank_table.entry_function_size,
    )
    assert set(told.context_layout) == set(rank_table.context_layout)
    assert len(told.ranks) == len(rank_table.ranks) == RANKS
    for rank, other in zip(told.ranks, rank_table.ranks):
        assert (rank.rank, rank.state, rank.kernel_thread) == (other.rank, other.state, other.kernel_thread)
        assert (rank.stack, rank.range) == (other.stack, other.range)
        assert isinstance(rank.context, Absent) if isinstance(other.context, Absent) else rank.context == other.context
        assert _placements(told, rank) == _placements(rank_table, other)
        assert rank.heap == other.heap


def test_addresses_belong_to_the_ranks_that_print_them(job: tuple[str, str, Running]) -> None:
    method, language, up = job
    name = "state::g_rank" if language == "f90" else "g_rank"
    for rank, truth in up.truth.items():
        command = [sys.executable, "-m", "pieglobalsfind", "--pid", str(up.pid), truth.global_address]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        assert ("no rank  shared" if method == "none" else f"rank {rank}  ") in found
        assert f"{name}+0x0" in found


def test_nothing_is_searched_for(job: tuple[str, str, Running]) -> None:
    """The registry is whole by itself: no file of the program's is opened, no memory searched."""
    method, _, up = job
    if method == BOTH:
        pytest.skip("the module names no thread-local variables of copies: they are read as without it")
    target = open_target(pid=up.pid)
    sizes: list[int] = []
    read = target.read

    def counted(address: int, size: int) -> bytes:
        sizes.append(size)
        return read(address, size)

    target.read = counted  # type: ignore[method-assign]
    assert len(decode(target).ranks) == RANKS
    assert sum(sizes) < 100_000


def test_who_waits_in_which_call(job: tuple[str, str, Running]) -> None:
    _, _, up = job
    command = [sys.executable, "-m", "inspector", "ranks", str(up.pid), "--json"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = {load["rank"]: load for load in json.loads(said)["ranks"]}
    assert found[0]["state"] == "running"
    assert {(found[rank]["state"], found[rank]["waiting"]["call"]) for rank in range(1, RANKS)} == {
        ("blocked", "MPI_Recv")
    }


def test_a_stripped_loader_loses_nothing(job: tuple[str, str, Running], tmp_path: Path) -> None:
    """What the hook publishes is all there, whether `.symtab` is or not; swapped globals it does not publish."""
    method, language, up = job
    if language == "f90":
        pytest.skip("C and C++ are run for it, to save time")
    folder = tmp_path / "stripped"
    shutil.copytree(up.folder, folder)
    subprocess.run(["strip", "prog"], cwd=folder, check=True, timeout=60)
    with running(folder) as stripped:
        target = open_target(pid=stripped.pid)
        table = decode(target)
        assert [rank.rank for rank in table.ranks] == list(range(RANKS))
        assert [isinstance(rank.context, int) for rank in table.ranks] == [False] + [True] * (RANKS - 1)
        for rank, truth in stripped.truth.items():
            found = subprocess.run(
                [sys.executable, "-m", "pieglobalsfind", "--pid", str(stripped.pid), truth.stack_address],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            assert re.search(rf"rank {rank}  stack", found)
    assert (UNKNOWN.format(STRIPPED) in table.warnings) == (method == "swap")
