"""Ranks of a real SMPI job, run by Debian's SimGrid: what is found against what the program prints itself."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional, cast

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.smpi.decode import WITHOUT_MPI
from pieglobalsfind.decoders.smpi.numbering import ACTORS
from pieglobalsfind.decoders.smpi.requests import Requests
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, RUNNING, RankTable, Region
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.target import Target, read_or_none
from pieglobalsfind.targets import open_target
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.answers import TARGETS, asked, owners, ranks_of
from tests.support.smpi.jobs import (
    FACTORIES,
    SOURCES,
    Running,
    built,
    command,
    kernel_core,
    lacks,
    needs_smpi,
    platform,
    process_of,
    sleeps,
    start,
)
from tests.support.waiting import wait_until

pytestmark = needs_smpi
RANKS = 4
MANY = 16


def check_variables(table: RankTable, running: Running, count: int) -> None:
    """Every variable that the program tells of is where its rank has it by the table."""
    assert [rank.rank for rank in table.ranks] == list(range(count))
    (program,) = [elf_object for elf_object in table.objects if elf_object.is_program]
    said = [truth for truth in running.told if truth.name.rpartition("::")[2] in ("g_rank", "s_rank")]
    assert len(said) >= count
    first = {truth.name: truth for truth in said if truth.rank == 0}
    for truth in said:
        assert data_place(table.ranks[truth.rank], program, first[truth.name].address) == truth.address
    for truth in running.variable("stack").values():
        stack = table.ranks[truth.rank].stack
        assert isinstance(stack, Region) and truth.address in stack


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_variables_and_stacks_belong_to_the_ranks_that_print_them(
    language: str, start_job: StartJob, shared: Shared, tmp_path: Path
) -> None:
    running = start(start_job, tmp_path, RANKS, built(shared, f"truth.{language}"))
    table = decode(open_target(pid=running.pid))
    assert (table.runtime, table.method, table.rank_count, table.warnings) == ("SMPI", "fs", RANKS, ())
    check_variables(table, running, RANKS)
    for truth in running.told:
        (line,) = owners(running.pid, truth.address)
        kind = "stack" if truth.name == "stack" else "tls" if truth.name.endswith("t_rank") else "data"
        assert f"rank {truth.rank}  {kind}" in line, line
        assert kind == "stack" or f"{truth.name.rpartition('::')[2]}+0x0" in line, line


@pytest.mark.parametrize("factory", FACTORIES)
def test_each_way_of_switching(factory: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Values are what the program prints; ranks 1-15 wait in MPI_Recv, three calls below main."""
    if lacks(factory):
        pytest.skip("SimGrid 4 has no contexts of this kind")
    program = built(shared, "truth.c")
    running = start(start_job, tmp_path, MANY, program, [f"--cfg=contexts/factory:{factory}"])
    check_variables(decode(open_target(pid=running.pid)), running, MANY)
    values = {
        one["name"]: {rank: int(group["value"]) for group in one["groups"] for rank in ranks_of(group["ranks"])}
        for one in asked("globals", running.pid, "*_rank")["globals"]
    }
    for name in ("g_rank", "s_rank", "t_rank"):
        assert values[name] == {rank: truth.value for rank, truth in running.variable(name).items()}
    line = next(at for at, text in enumerate((SOURCES / "truth.c").read_text().splitlines(), 1) if "MPI_Recv" in text)
    (waiting,) = asked("stacks", running.pid, "--rank", f"1-{MANY - 1}", "--freeze")["stacks"]
    calls = [(one["function"], one["line"]) for one in waiting["calls"]]
    assert [name for name, _ in calls[:5]] == ["main", "below", "below", "below", "MPI_Recv"]
    assert calls[3] == ("below", line)
    (sleeping,) = asked("stacks", running.pid, "--rank", "0", "--freeze")["stacks"]
    assert [one["function"] for one in sleeping["calls"]][:4] == ["main", "below", "below", "below"]


def test_who_runs_and_who_waits(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.c"))
    found = {one["rank"]: one for one in asked("ranks", running.pid)["ranks"]}
    assert found[0]["state"] == RUNNING
    for rank in range(1, RANKS):
        assert (found[rank]["state"], found[rank]["waiting"]["call"]) == ("blocked", "MPI_Recv")


def test_a_variable_of_which_the_loader_keeps_one(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """SMPI's copies are in one namespace: they share C++ inline variables, and what is said of them says so."""
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.cpp"))
    (address,) = {line.split()[1] for line in running.job.lines if line.startswith("COMMON")}
    (line,) = owners(running.pid, int(address, 16))
    assert "no rank" in line and "several ranks share it" in line and "common+0x0" in line
    (variable,) = asked("globals", running.pid, "common")["globals"]
    assert [(one["ranks"], one["value"]) for one in variable["groups"]] == [("0-3", str(4 + 0 + 1 + 2 + 3))]


def test_without_privatization(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """All ranks use the one program, and are said to."""
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.c"), ["-no-privatize"])
    table = decode(open_target(pid=running.pid))
    assert (table.method, table.warnings) == ("none", ())
    assert len({truth.address for truth in running.variable("g_rank").values()}) == 1
    check_variables(table, running, RANKS)
    (line,) = owners(running.pid, running.told[0].address)
    assert "no rank  shared" in line
    values = {
        one["name"]: [group["value"] for group in one["groups"]] for one in asked("globals", running.pid)["globals"]
    }
    assert (values["g_rank"], values["t_rank"]) == ([str(RANKS - 1)], [str(2000 + RANKS - 1)])


@pytest.mark.parametrize("how", ["live", "gcore", "kernel"])
def test_data_that_is_remapped_at_each_switch(how: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """All ranks print the same address; what lies there is that rank's that SMPI has mapped last."""
    running = start(start_job, tmp_path, MANY, built(shared, "truth.c"), ["--cfg=smpi/privatization:mmap"])
    makers = {"gcore": make_core, "kernel": kernel_core}
    target = makers[how](running.pid, tmp_path) if how in makers else running.pid
    found = {one["name"]: one for one in asked("globals", target)["globals"]}
    for name in ("g_rank", "s_rank"):
        assert len({truth.address for truth in running.variable(name).values()}) == 1
        values = {rank: int(one["value"]) for one in found[name]["groups"] for rank in ranks_of(one["ranks"])}
        assert values == {rank: truth.value for rank, truth in running.variable(name).items()}
    assert found["t_rank"]["verdict"] == "shared"  # of which SMPI knows nothing: one for the kernel thread
    (waiting,) = asked("stacks", target, "--rank", f"1-{MANY - 1}")["stacks"]
    assert [one["function"] for one in waiting["calls"]] == ["main", "below", "below", "below", "MPI_Recv"]


def test_gdb_with_data_that_is_remapped(start_job: StartJob, shared: Shared, gdb: Path, tmp_path: Path) -> None:
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.c"), ["--cfg=smpi/privatization:mmap"])
    script = f"""
    tell("all", ask("rank print g_rank"))
    tell("watch", [ask("rank watch g_rank 2"), ask("rank watch me 2")])
    tell("each", [(ask(f"rank {{one}}"), value("g_rank"), value("s_rank"))[1:] for one in range({RANKS})])
    """
    answers = Session(gdb, tmp_path).attach(script, running.pid)
    assert answers["each"] == [[rank, 1000 + rank] for rank in range(RANKS)]
    of_data, of_stack = answers["watch"]
    assert of_data.startswith("Rank 2: ") and "Hardware watchpoint" in of_stack, answers["watch"]
    assert answers["all"].splitlines() == [f"{rank}: {rank}" for rank in range(RANKS)]


def test_ranks_that_have_ended(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Their copies stay, and so do their values."""
    running = start(start_job, tmp_path, RANKS, built(shared, "ending.c"))
    table = decode(open_target(pid=running.pid))
    assert [rank.state == EXITED for rank in table.ranks] == [False, False, True, True]
    check_variables(table, running, RANKS)


def test_a_thousand_ranks(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    running = start(start_job, tmp_path, 1000, built(shared, "truth.c"))
    check_variables(decode(open_target(pid=running.pid)), running, 1000)
    (waiting,) = asked("stacks", running.pid, "--rank", "1-999", "--freeze")["stacks"]
    assert waiting["ranks"] == "1-999"
    assert [one["function"] for one in waiting["calls"]] == ["main", "below", "below", "below", "MPI_Recv"]


@pytest.mark.parametrize("is_told", [True, False], ids=["privatize-libs", "stock"])
def test_a_library_s_globals(is_told: bool, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """SMPI copies the libraries that an option names, and keeps one of all others."""
    library = shared.compiled(
        ["gcc", "-g", "-shared", "-fPIC", "-Wl,-soname,libownlibrary.so", SOURCES / "library_own.c"], "libownlibrary.so"
    )
    program = built(shared, "library.c", str(library), f"-Wl,-rpath,{library.parent}")
    options = [f"--cfg=smpi/privatize-libs:{library.name}"] if is_told else []
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    running = start(start_job, tmp_path, RANKS, program, options, environment)
    places = {truth.rank: truth.address for truth in running.variable("own_count").values()}
    assert (len(set(places.values())) == RANKS) == is_told
    lines = owners(running.pid, *places.values())
    for rank, line in zip(places, lines):
        assert (f"rank {rank}  data" if is_told else "no rank  runtime") in line and "own_count+0x0" in line, line
    if is_told:
        (found,) = asked("globals", running.pid, "own_count")["globals"]
        assert [group["value"] for group in found["groups"]] == [str(5 + 10 * rank) for rank in range(RANKS)]


@pytest.mark.parametrize("factory", ["raw", "thread"])
def test_actors_that_are_no_ranks(factory: str, start_job: StartJob, shared: Shared, gdb: Path, tmp_path: Path) -> None:
    """They are listed by their pids as actors, with their stacks: live, in a core file and a snapshot, and in GDB."""
    place = SOURCES / "actors.cpp"
    program = shared.compiled(["g++", "-g", "-O0", "-std=c++17", place, "-lsimgrid"], "actors")
    description, _ = platform(tmp_path, 1)
    job = start_job(program, description, f"--cfg=contexts/factory:{factory}")
    job.wait_for("ready")
    wait_until(lambda: sleeps(job.pid), "the first actor never came to sleep")
    table = decode(open_target(pid=job.pid))
    assert (table.runtime, [rank.rank for rank in table.ranks], table.warnings) == (WITHOUT_MPI, [1, 2, 3], (ACTORS,))
    running = Running(job, job.pid, ())
    for how in ("live", "snapshot", "gcore"):
        target = TARGETS[how](running, tmp_path)
        (waiting,) = asked("stacks", target, "--rank", "2-3")["stacks"]
        assert waiting["ranks"] == "2-3" and "worker" in [one["function"] for one in waiting["calls"]]
        found = asked("report", target)
        assert [(one["rank"], one["is_actor"]) for one in found["ranks"]] == [(1, True), (2, True), (3, True)]
    answers = Session(gdb, tmp_path).attach('tell("said", [ask("rank list"), ask("rank 2"), ask("bt")])', job.pid)
    listed, _, calls = answers["said"]
    assert re.findall(r"(\d)  actor, (?:running|ready)", listed) == ["1", "2", "3"] and "worker (number=1)" in calls


def test_ranks_that_are_switched_all_the_time(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """At each moment every suspended rank's stack is whole, and no deadlock is seen: there is none."""
    job = start_job(*command(tmp_path, MANY, built(shared, "busy.c")))
    job.wait_for("ready")
    pid = process_of(job)
    for _ in range(5):
        found = asked("stacks", pid)
        whole = [one for one in found["stacks"] if [call["function"] for call in one["calls"]][:1] == ["main"]]
        told = {rank for one in whole for rank in ranks_of(one["ranks"])}
        assert len(told) >= MANY - 1, found  # one runs, perhaps in code without unwind information
        assert asked("waits", pid)["cycles"] == []


class Damaged:
    """A target of which now and then a word that is read is another one; in all else it is the one it was made of."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target, self._random = target, random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def read(self, address: int, size: int) -> bytes:
        data = bytearray(self._target.read(address, size))
        if size >= 8 and self._random.random() < 0.01:
            at = self._random.randrange(size // 8) * 8
            other = self._random.choice(
                (0, 8, 1 << 63, (1 << 64) - 8, address, address + 8, self._random.getrandbits(64))
            )
            data[at : at + 8] = other.to_bytes(8, "little")
        return bytes(data)

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        return [read_or_none(cast(Target, self), *place) for place in places]


def test_damaged_memory(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Whatever is read, the answer is a table or an error of ours, and soon."""
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.cpp"))
    sound = open_target(core=str(make_core(running.pid, tmp_path)))
    check_variables(decode(sound), running, RANKS)
    for seed in range(150):
        damaged = cast(Target, Damaged(sound, seed))
        with suppress(RanklensError):
            table = decode(damaged)
            requests = Requests(damaged, table)
            for rank in table.ranks:
                if isinstance(rank.stack, Region):
                    requests.waiting(rank, rank.stack.end - 4096, "MPI_Recv")
