"""Stock GDB, without any extension, through the server: rank k is as process k of the same program would be.

The oracle is that of tests/oracle: the same source as one process per rank under MPICH, asked the same questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.oracle.test_oracle import differences
from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS as PLACES_RANKS
from tests.support.gdb.places import Places, make_core
from tests.support.gdb.session import Session
from tests.support.host.controller import Controller, Gdb
from tests.support.host.plan import Answers, Plan, Query
from tests.support.oracle import c_program, cxx_program, fortran_program
from tests.support.oracle.program import RANKS, Program
from tests.support.oracle.runs import Runs
from tests.support.rsp import BASE, is_stopped
from tests.support.running import ROOT, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until, wait_until_it_loops

PROGRAMS = (*c_program.PROGRAMS, *cxx_program.PROGRAMS, *fortran_program.PROGRAMS)
SETTINGS = ("set sysroot /", "set remotetimeout 60")
# What the extension's command `rank N` is in the other oracle tests.
BY_ATTACH = f'define rank\nif $has_one\ndetach\nend\neval "attach %d", {BASE} + $arg0\nset $has_one = 1\nend'

FORTRAN_MAIN = re.compile(r"^#\d+ .*\bmain \(.*\) at \S+\.f90:\d+\n", re.MULTILINE)


class Stock(Gdb):
    """GDB that is not given a process: the plan connects it."""

    def attach(self, pid: int) -> list[str]:
        return [*self._start(), "-x", str(self.script)]


@dataclass(frozen=True)
class Served:
    """The answers about a program from virtual ranks, each a process of the server's."""

    runs: Runs
    gdb: Stock

    def live(self, program: Program) -> Answers:
        """One rank after the other is attached to, and detached from."""

        def run(folder: Path) -> None:
            job = self.runs.held_job(program, folder)
            try:
                self._ask(folder, program, job.pid)
            finally:
                job.close()

        return self._once(f"{program}.served", run)

    def core(self, program: Program) -> Answers:
        """The same of a core file."""

        def run(folder: Path) -> None:
            self.runs.core(program)
            (core,) = (self.runs.shared.root / f"{program}.core.gdb").glob("core.*")
            self._ask(folder, program, core)

        return self._once(f"{program}.served-core", run)

    def _ask(self, folder: Path, program: Program, target: object) -> None:
        serve = f"target extended-remote | {built('inspector')} serve {target}"
        plan = Plan((*SETTINGS, serve, BY_ATTACH), program.queries, ranks=tuple(range(RANKS)))
        Controller(self.gdb, folder).attached(0, plan)

    def _once(self, name: str, run: Callable[[Path], object]) -> Answers:
        return Answers.load(self.runs.shared.made(f"{name}.gdb", run) / "answers")


@pytest.fixture(scope="session")
def served(gdb: Path, shared: Shared) -> Served:
    return Served(Runs(Gdb(gdb), shared), Stock(gdb))


class Trimmed(Answers):
    """Answers without the `main` that gfortran makes: GDB shows it until it knows which function is the program's."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def text(self, rank: int, query: Query) -> str:
        return FORTRAN_MAIN.sub("", self._answers.text(rank, query))


def differ(program: Program, native: Answers, served: Answers) -> str:
    return differences(program, program.queries, Trimmed(native), Trimmed(served))


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_live(program: Program, served: Served) -> None:
    found = differ(program, served.runs.native(program), served.live(program))
    assert not found, found


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program.optimization == "-O0"], ids=str)
def test_core(program: Program, served: Served) -> None:
    found = differ(program, served.runs.native(program), served.core(program))
    assert not found, found


RANKS_GDB = ROOT / "docs" / "ranks.gdb"
AT_ONCE = """
ask("set sysroot /")
ask("set remotetimeout 60")
ask("target extended-remote | INSPECTOR serve TARGET --all")
ask("thread apply all -q set sysroot /")
"""
BY_ATTACHING = """
ask("set sysroot /")
ask("set remotetimeout 60")
ask("target extended-remote | INSPECTOR serve TARGET")
ask("source RANKS.GDB")
ask("ranks COUNT")
"""
TELL = """
for one in gdb.inferiors():
    ask("inferior %d" % one.num)
    names = [ask("output " + name) for name in ("shared_name", "file_static", "pair.second")]
    tell(str(one.num - 1), [one.pid, gdb.selected_thread().name, names, functions()])
"""


@pytest.mark.parametrize("way", ["at once", "one by one"])
def test_every_rank_is_an_inferior(way: str, gdb: Path, places: Places, tmp_path: Path) -> None:
    """With its own variables, and a stack down to main."""
    if way == "at once" and gdb_version() >= (17, 0):
        pytest.skip("GDB 17 and newer set up the first process of a connection alone")
    script = (AT_ONCE if way == "at once" else BY_ATTACHING) + TELL
    words = {"INSPECTOR": built("inspector"), "TARGET": places.pid, "COUNT": PLACES_RANKS, "RANKS.GDB": RANKS_GDB}
    for name, value in words.items():
        script = script.replace(name, str(value))
    answers = Session(gdb, tmp_path).run(script, source=False)
    for rank in range(PLACES_RANKS):
        pid, name, values, functions = answers[str(rank)]
        expected = [places.owned[rank, name].value for name in ("shared_name", "file_static", "pair")]
        assert (pid, name, values) == (BASE + rank, f"rank {rank}", list(map(str, expected)))
        assert functions[-1] == "main" and functions[-2] == "stay", functions
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")


IN_THE_KERNELS_CODE = """
ask("set sysroot /")
ask("set remotetimeout 60")
for rank in (0, 1):
    ask("target extended-remote | INSPECTOR serve TARGET --rank %d" % rank)
    tell(str(rank), [functions(), ask("info sharedlibrary")])
    ask("detach")
    ask("disconnect")
"""


@pytest.mark.parametrize("source", ["live", "core"])
def test_a_rank_that_asks_for_the_time(
    source: str, gdb: Path, start_job: StartJob, rankrun: Path, rankcc: Path, shared: Shared, tmp_path: Path
) -> None:
    """It is in code that is in no file; its stack goes on to main all the same."""
    program = shared.copied([rankcc, "-g", "-O0", ROOT / "tests/inspector/sources/clock.c"], tmp_path / "clock")
    job = start_job(rankrun, "-n", 2, program)
    job.wait_for("ready")
    wait_until_it_loops(job.pid)
    target = job.pid if source == "live" else make_core(job.pid, tmp_path)
    script = IN_THE_KERNELS_CODE.replace("INSPECTOR", str(built("inspector"))).replace("TARGET", str(target))
    answers = Session(gdb, tmp_path).run(script, source=False)
    for rank, caller in ((0, "MPI_"), (1, "ask")):
        functions, libraries = answers[str(rank)]
        assert functions[-1] == "main" and functions[-2].startswith(caller), functions
        assert source == "core" or "/fd/" in libraries, libraries


def test_what_is_refused(gdb: Path, places: Places, tmp_path: Path) -> None:
    """One sentence each, and the session goes on."""
    script = """
    ask("set sysroot /")
    ask("set remotetimeout 60")
    ask("target extended-remote | INSPECTOR serve TARGET --rank 1")
    for name, command in (("write", "print shared_name = 5"), ("break", "break move_on"), ("step", "stepi"),
                          ("call", "print move_on(0, 0)"), ("kill", "kill"), ("value", "output shared_name")):
        tell(name, ask(command))
    """.replace("INSPECTOR", str(built("inspector"))).replace("TARGET", str(places.pid))
    answers = Session(gdb, tmp_path).run(script, source=False)
    assert answers["write"].startswith("error: Cannot access memory")
    assert answers["kill"].startswith("error: Can't kill process")
    assert answers["call"].startswith("error: ")
    assert answers["value"] == "11"
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")
