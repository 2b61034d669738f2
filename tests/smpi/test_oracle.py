"""The measure of the GDB extension under SMPI: rank k is as process k of the same source under MPICH would be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.oracle.test_oracle import differences
from tests.support.gdb.places import make_core
from tests.support.host.controller import Controller, Gdb
from tests.support.host.plan import Answers, Plan
from tests.support.oracle import c_program, cxx_program, fortran_program
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import ARGUMENT, RANKS, Program
from tests.support.oracle.runs import walking
from tests.support.sharing import Shared
from tests.support.smpi.jobs import kernel_core, needs_smpi
from tests.support.smpi.oracle import Programs, answers_in

pytestmark = [needs_smpi, pytest.mark.timeout(900)]
PATIENCE = 600  # seconds
NEVER_ASKED = (
    NeverAsked(r"info line", "what comes before in the function is a call of MPI, with other arguments"),
    NeverAsked(r"tbreak stages::start", "in a shared object GDB takes a C++ function's stub for a place of it, too"),
)
PROGRAMS = (c_program.PROGRAMS[0], cxx_program.PROGRAMS[0], fortran_program.PROGRAMS[0])


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    gdb: Gdb

    def program(self, asked: Program) -> Program:
        return self.programs.program(asked, NEVER_ASKED)

    def native(self, asked: Program) -> Answers:
        """Each rank a process under MPICH, in a GDB that knows nothing of us."""
        program = self.program(asked)

        def run(folder: Path) -> Answers:
            plan = replace(walking(program), prepare=program.stop_natively)
            executable = self.programs.as_processes(program)
            return Controller(self.gdb, folder).native([str(executable), ARGUMENT], RANKS, plan)

        return answers_in(self.programs.shared.made(f"smpi-{asked}-native.gdb", run))

    def live(self, asked: Program) -> Answers:
        """All ranks in one process, to which GDB attaches."""
        program = self.program(asked)

        def run(folder: Path) -> Answers:
            with self.programs.held(program, folder) as (_, pid):
                return Controller(self.gdb, folder, PATIENCE).attached(pid, self._plan(program))

        return answers_in(self.programs.shared.made(f"smpi-{asked}-live.gdb", run))

    def core(self, asked: Program) -> Answers:
        """All ranks in one core file: the kernel's, or GDB's gcore's."""
        program = self.program(asked)

        def run(folder: Path) -> Answers:
            with self.programs.held(program, folder) as (_, pid):
                core = make_core(pid, folder) if asked.name == "shapes" else kernel_core(pid, folder)
            plan = replace(self._plan(program), walk=())
            return Controller(self.gdb, folder, PATIENCE).opened(core, folder / asked.name, plan)

        return answers_in(self.programs.shared.made(f"smpi-{asked}-core.gdb", run))

    def _plan(self, program: Program) -> Plan:
        return replace(walking(program), prepare=(f"source {self.gdb.extension}",), ranks=tuple(range(RANKS)))


@pytest.fixture(scope="session")
def runs(shared: Shared, gdb: Path) -> Runs:
    return Runs(Programs(shared), Gdb(gdb))


@pytest.mark.parametrize("asked", PROGRAMS, ids=str)
def test_live(asked: Program, runs: Runs) -> None:
    """What is asked about every rank, and where steps, calls and breakpoints bring the one that runs."""
    program, native, virtual = runs.program(asked), runs.native(asked), runs.live(asked)
    found = differences(program, program.queries, native, virtual)
    found += differences(program, program.walk, native, virtual, [RANKS - 1])
    assert not found, found


@pytest.mark.parametrize("asked", PROGRAMS, ids=str)
def test_core(asked: Program, runs: Runs) -> None:
    program = runs.program(asked)
    found = differences(program, program.queries, runs.native(asked), runs.core(asked))
    assert not found, found


def test_enough_commands_are_compared(runs: Runs) -> None:
    programs = [runs.program(program) for program in PROGRAMS]
    asked = {query.command for program in programs for query in program.queries}
    steps = {query.command for program in programs for query in program.walk}
    assert len(asked) >= 500 and len(steps) >= 50
