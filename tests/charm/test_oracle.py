"""The measure of the GDB extension on stock AMPI: rank k is as process k of the same source under MPICH would be.

Programs and questions are those of tests/oracle, but for what charm/oracle.py says of main.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.oracle.test_oracle import differences
from tests.support.charm.jobs import AMPICC
from tests.support.charm.oracle import (
    CORES,
    LIVE,
    PATIENCE,
    Programs,
    alone_in,
    answers_in,
    core_of,
    is_debug_build,
    like,
)
from tests.support.charm.shared_variables import of_every_rank, own_steps, truth
from tests.support.host.controller import Controller, Gdb
from tests.support.host.plan import Answers, Plan
from tests.support.oracle import c_program, cxx_program, fortran_program
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import ARGUMENT, RANKS, Program
from tests.support.oracle.runs import walking
from tests.support.sharing import Shared

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(1800),  # the debug information of a debug build of Charm++ is large
]
NEVER_ASKED = (
    NeverAsked(r"(bt|backtrace)( full)? -\d+", "counts from the outermost frame, which is AMPI's"),
    NeverAsked(r"info line", "what comes before in the function is a call of MPI, with other arguments"),
    NeverAsked(r"info line checkpoint", "to Fortran, which knows no case, functions of Charm++ have that name, too"),
    NeverAsked(r"tbreak stages::start", "in a shared object GDB takes a C++ function's stub for a place of it, too"),
)
# Of a debug build Charm++'s own debug information is the program's, too. Plain GDB says the same of a process with it.
NEVER_ASKED_OF_DEBUG_BUILDS = {
    "shapes": (
        NeverAsked(r"(whatis|ptype) census|whatis local_names", "std::string is spelled out, as Charm++ has it"),
    ),
    "fields": (NeverAsked(r"(list|info scope) checkpoint", "Fortran knows no case: functions of Charm++ are listed"),),
}
NEVER_ASKED_UNDER: dict[str, tuple[NeverAsked, ...]] = {
    "tls": (
        NeverAsked(r"info (address|scope) .*", "thread-local variables have addresses in the symbols of a rank"),
        NeverAsked(
            r"info common.*|print (grid_size|padding|weights|blank_value).*", "COMMON blocks are one for all ranks"
        ),
    ),
}
# How GDB without us comes to the rank that runs: in SMP builds that is not on the first thread.
ALONE = (
    "python next(one for one in gdb.selected_inferior().threads()"
    " if one.switch() or gdb.newest_frame().name() == 'hold_running')",
)
PROGRAMS = (*c_program.PROGRAMS, cxx_program.PROGRAMS[0], fortran_program.PROGRAMS[0])
ASKED = {one.name: one for one in (c_program.PROGRAMS[0], cxx_program.PROGRAMS[0], fortran_program.PROGRAMS[0])}


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    gdb: Gdb

    def program(self, asked: Program, method: str) -> Program:
        never = [*NEVER_ASKED, *NEVER_ASKED_UNDER.get(method, ())]
        if is_debug_build():
            never += NEVER_ASKED_OF_DEBUG_BUILDS.get(asked.name, ())
        program = self.programs.program(asked, never)
        # COMMON blocks are one for all ranks under tls, too; without us GDB can't say what lies beside them.
        has_common = method == "tls" and asked.name == "fields"
        return replace(program, queries=tuple(of_every_rank(program))) if has_common else program

    def native(self, asked: Program, method: str) -> Answers:
        """Each rank a process under MPICH, in a GDB that knows nothing of us."""
        method = like(asked, method)
        program = self.program(asked, method)

        def run(folder: Path) -> Answers:
            plan = replace(walking(program), prepare=program.stop_natively)
            executable = self.programs.as_processes(program, method)
            return Controller(self.gdb, folder).native([str(executable), ARGUMENT], RANKS, plan)

        return answers_in(self.programs.shared.made(f"ampi-{asked}-{method}-native.gdb", run))

    def live(self, asked: Program, method: str) -> Path:
        """All ranks in one process, to which GDB attaches: the folder of the answers."""
        program = self.program(asked, method)

        def run(folder: Path) -> None:
            with self.programs.held(program, method, folder) as job:
                if method == "none":
                    self._controller(alone_in(folder)).attached(job.pid, plan_alone(program))
                self._controller(folder).attached(job.pid, self._plan(program))

        return self.programs.shared.made(f"ampi-{asked}-{method}-live.gdb", run)

    def core(self, asked: Program, method: str, writer: str) -> Path:
        """All ranks in one core file: the folder of the answers."""
        program = self.program(asked, method)

        def run(folder: Path) -> None:
            with self.programs.held(program, method, folder) as job:
                core = core_of(job, folder, writer)
            if method == "none":
                self._controller(alone_in(folder)).opened(core, folder / asked.name, plan_alone(program))
            self._controller(folder).opened(core, folder / asked.name, replace(self._plan(program), walk=()))

        return self.programs.shared.made(f"ampi-{asked}-{method}-core.gdb", run)

    def true(self, asked: Program, method: str, folder: Path) -> Answers:
        """What is to be said of the job whose answers are in a folder."""
        natives = self.native(asked, method)
        if method != "none":
            return natives
        return truth(self.program(asked, method), natives, answers_in(alone_in(folder)))

    def _controller(self, folder: Path) -> Controller:
        return Controller(self.gdb, folder, PATIENCE)

    def _plan(self, program: Program) -> Plan:
        return replace(walking(program), prepare=(f"source {self.gdb.extension}",), ranks=tuple(range(RANKS)))


def plan_alone(program: Program) -> Plan:
    return Plan(ALONE, program.queries)


@pytest.fixture(scope="session")
def runs(shared: Shared, gdb: Path) -> Runs:
    return Runs(Programs(shared), Gdb(gdb))


def unequal(runs: Runs, asked: Program, method: str, folder: Path) -> str:
    """What differs in the answers that are in a folder."""
    program, true, virtual = runs.program(asked, method), runs.true(asked, method, folder), answers_in(folder)
    found = differences(program, program.queries, true, virtual, [RANKS - 1])
    queries = program.queries if method != "none" else of_every_rank(program)
    return found + differences(program, queries, true, virtual, range(RANKS - 1))


@pytest.mark.parametrize("method", LIVE)
@pytest.mark.parametrize("asked", PROGRAMS, ids=str)
def test_live(asked: Program, method: str, runs: Runs) -> None:
    """What is asked about every rank, and where steps, calls and breakpoints bring the one that runs."""
    program, folder = runs.program(asked, method), runs.live(asked, method)
    found = unequal(runs, asked, method, folder)
    walk = program.walk if method != "none" else own_steps(program)
    found += differences(program, walk, runs.native(asked, method), answers_in(folder), [RANKS - 1])
    assert not found, found


@pytest.mark.parametrize(("name", "method", "writer"), CORES)
def test_core(name: str, method: str, writer: str, runs: Runs) -> None:
    found = unequal(runs, ASKED[name], method, runs.core(ASKED[name], method, writer))
    assert not found, found


def test_enough_commands_are_compared(runs: Runs) -> None:
    programs = [runs.program(one, "pie") for one in ASKED.values()]
    lacking = [len(ASKED[program.name].queries) - len(program.queries) for program in programs]
    assert max(lacking) <= 8, lacking
    asked = {query.command for program in programs for query in program.queries}
    steps = {query.command for program in programs for query in program.walk}
    assert len(asked) >= 500 and len(steps) >= 50
