"""The measure of the LLDB extension under SMPI: rank k is as process k of the same source under MPICH would be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.places import make_core
from tests.support.host.plan import Answers
from tests.support.lldb.oracle import Asker, differences, virtual_plan
from tests.support.lldb.questions import PROGRAMS
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import Program
from tests.support.sharing import Shared
from tests.support.smpi.jobs import kernel_core, needs_smpi
from tests.support.smpi.oracle import Programs, answers_in

pytestmark = [needs_smpi, pytest.mark.timeout(900)]
PATIENCE = 600  # seconds
AS_IT_COMES = NeverAsked(
    r".*: target variable (couple|either)", "whether LLDB knows the string inside depends on what it has met before"
)
ASKED = {program.name: program for program in PROGRAMS if program.optimization == "-O0"}


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    asker: Asker

    def program(self, name: str) -> Program:
        program = ASKED[name]
        queries = (
            query
            for query in program.queries
            if not re.fullmatch(AS_IT_COMES.pattern, f"{query.frame}: {query.command}")
        )
        return self.programs.program(replace(program, queries=tuple(queries)), ())

    def native(self, name: str) -> Answers:
        """Each rank a process under MPICH, in an LLDB that knows nothing of us."""
        program = self.program(name)

        def run(folder: Path) -> None:
            self.asker.natives(program, self.programs.as_processes(program), folder)

        return answers_in(self._made(f"{name}-native", run))

    def native_core(self, name: str) -> Answers:
        program = self.program(name)

        def run(folder: Path) -> None:
            self.asker.native_cores(program, self.programs.as_processes(program), folder)

        return answers_in(self._made(f"{name}-native-core", run))

    def live(self, name: str) -> Answers:
        """All ranks in one process, to which LLDB attaches."""
        program = self.program(name)

        def run(folder: Path) -> None:
            with self.programs.held(program, folder) as (_, pid):
                self.asker.ask(folder, ["-p", str(pid)], virtual_plan(program))

        return answers_in(self._made(f"{name}-live", run))

    def core(self, name: str) -> Answers:
        """All ranks in one core file: the kernel's, or gcore's."""
        program = self.program(name)

        def run(folder: Path) -> None:
            with self.programs.held(program, folder) as (_, pid):
                core = make_core(pid, folder) if name == "cells" else kernel_core(pid, folder)
            self.asker.ask(folder, [str(folder / name), "-c", str(core)], virtual_plan(program))

        return answers_in(self._made(f"{name}-core", run))

    def _made(self, name: str, run: Callable[[Path], None]) -> Path:
        return self.programs.shared.made(f"smpi-{name}.lldb", run)


@pytest.fixture(scope="session")
def runs(shared: Shared) -> Runs:
    return Runs(Programs(shared), Asker(find_lldb(), PATIENCE))


@pytest.mark.parametrize("name", ASKED)
def test_live(name: str, runs: Runs) -> None:
    program = runs.program(name)
    found = differences(program, program.queries, [runs.native(name)], runs.live(name))
    assert not found, found


@pytest.mark.parametrize("name", ASKED)
def test_core(name: str, runs: Runs) -> None:
    program = runs.program(name)
    found = differences(program, program.queries, [runs.native_core(name), runs.native(name)], runs.core(name))
    assert not found, found
