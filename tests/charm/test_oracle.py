"""The measure of the GDB extension on stock AMPI: rank k is as process k of the same source under MPICH would be.

Programs and questions are those of tests/oracle, but for what charm/oracle.py says of main.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.charm.jobs import AMPICC
from tests.charm.oracle import OPTIONS, PATIENCE, Programs, is_debug_build
from tests.host.controller import Controller, Gdb
from tests.host.plan import Answers, Plan
from tests.oracle import c_program, cxx_program, fortran_program
from tests.oracle.conftest import walking
from tests.oracle.exceptions import NeverAsked
from tests.oracle.program import ARGUMENT, RANKS, Program
from tests.oracle.test_oracle import differences

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
# At -O2 MPI's header decides about registers: only what is not optimized is the same code.
ASKED = {one.name: one for one in (c_program.PROGRAMS[0], cxx_program.PROGRAMS[0], fortran_program.PROGRAMS[0])}


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    gdb: Gdb

    def program(self, name: str) -> Program:
        never = (*NEVER_ASKED, *(NEVER_ASKED_OF_DEBUG_BUILDS.get(name, ()) if is_debug_build() else ()))
        return self.programs.program(ASKED[name], never)

    def native(self, name: str, options: list[str]) -> Answers:
        """Each rank a process under MPICH, in a GDB that knows nothing of us."""

        def run(folder: Path) -> Answers:
            program = self.program(name)
            executable = self.programs.as_processes(program, options, folder)
            plan = replace(walking(program), prepare=program.stop_natively)
            return Controller(self.gdb, folder).native([str(executable), ARGUMENT], RANKS, plan)

        return self.programs.once("-".join([name, "native", *options]), run)

    def live(self, name: str, method: str) -> Answers:
        """All ranks in one process, to which GDB attaches."""

        def run(folder: Path) -> Answers:
            with self.programs.held(self.program(name), method, folder) as job:
                return Controller(self.gdb, folder, PATIENCE).attached(job.pid, self._plan(name))

        return self.programs.once(f"{name}-{method}", run)

    def core(self, name: str, method: str) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            with self.programs.held(self.program(name), method, folder) as job:
                command = ["gcore", "-o", "core", str(job.pid)]
                subprocess.run(command, cwd=folder, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
            plan = replace(self._plan(name), walk=())
            return Controller(self.gdb, folder, PATIENCE).opened(folder / f"core.{job.pid}", folder / name, plan)

        return self.programs.once(f"{name}-{method}-core", run)

    def _plan(self, name: str) -> Plan:
        source = f"source {self.gdb.extension}"
        return replace(walking(self.program(name)), prepare=(source,), ranks=tuple(range(RANKS)))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, gdb: Path) -> Runs:
    return Runs(Programs.in_folder(tmp_path_factory.mktemp("oracle")), Gdb(gdb))


def unequal(runs: Runs, name: str, method: str, virtual: Answers, walk: bool) -> str:
    program, native = runs.program(name), runs.native(name, OPTIONS.get(method, []))
    found = differences(program, program.queries, native, virtual)
    return found + (differences(program, program.walk, native, virtual, [RANKS - 1]) if walk else "")


@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
@pytest.mark.parametrize("name", ASKED)
def test_live(name: str, method: str, runs: Runs) -> None:
    """What is asked about every rank, and where steps, calls and breakpoints bring the one that runs."""
    found = unequal(runs, name, method, runs.live(name, method), walk=True)
    assert not found, found


@pytest.mark.parametrize(("name", "method"), [("cells", "pie"), ("shapes", "pie"), ("fields", "pip")])
def test_core(name: str, method: str, runs: Runs) -> None:
    found = unequal(runs, name, method, runs.core(name, method), walk=False)
    assert not found, found


def test_enough_commands_are_compared(runs: Runs) -> None:
    programs = [runs.program(name) for name in ASKED]
    lacking = [len(ASKED[one.name].queries) - len(one.queries) for one in programs]
    assert max(lacking) <= 8, lacking
    asked = {query.command for program in programs for query in program.queries}
    steps = {query.command for program in programs for query in program.walk}
    assert len(asked) >= 500 and len(steps) >= 50
