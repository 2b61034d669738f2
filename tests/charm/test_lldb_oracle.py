"""The measure of the LLDB extension on stock AMPI: rank k is as process k of the same source under MPICH would be.

Programs and questions are those of tests/lldb/questions.py, but for what charm/oracle.py says of main; those of
optimized programs are not asked: MPI's header decides about registers there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.charm.jobs import AMPICC
from tests.charm.oracle import OPTIONS, PATIENCE, Programs, is_debug_build
from tests.charm.test_lldb import LLDB
from tests.gdb.conftest import make_core
from tests.host.plan import Answers
from tests.lldb.oracle import ADDRESS, Asker, differences, normalize, virtual_plan
from tests.lldb.questions import PROGRAMS
from tests.oracle.comparison import check_that_processes_differ
from tests.oracle.exceptions import NeverAsked
from tests.oracle.program import RANKS, Program

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.skipif(not LLDB, reason="LLDB is not installed"),
    pytest.mark.timeout(1800),  # the debug information of a debug build of Charm++ is large
]
# Charm++'s own parts have debug information then, and functions that are inlined otherwise.
NEVER_ASKED_OF_DEBUG_BUILDS = {
    "cells": (NeverAsked(r"p cells", "in frames of Charm++ LLDB speaks C++: a null pointer is `nullptr`, not `NULL`"),),
    "shapes": (
        NeverAsked(r"p (history\[0\]|words\[1\])", "calls std::vector's operator, which the program itself lacks"),
    ),
}
ASKED = {one.name: one for one in PROGRAMS if one.optimization == "-O0"}


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    asker: Asker

    def program(self, name: str) -> Program:
        never = NEVER_ASKED_OF_DEBUG_BUILDS.get(name, ()) if is_debug_build() else ()
        return self.programs.program(ASKED[name], never)

    def native(self, name: str, options: list[str]) -> Answers:
        """Each rank a process under MPICH, in an LLDB that knows nothing of us."""

        def run(folder: Path) -> Answers:
            program = self.program(name)
            return self.asker.natives(program, self.programs.as_processes(program, options, folder), folder)

        return self.programs.once("-".join([name, "native", *options]), run)

    def native_core(self, name: str) -> Answers:
        def run(folder: Path) -> Answers:
            program = self.program(name)
            return self.asker.native_cores(program, self.programs.as_processes(program, [], folder), folder)

        return self.programs.once(f"{name}-native-core", run)

    def live(self, name: str, method: str) -> Answers:
        """All ranks in one process, to which LLDB attaches."""

        def run(folder: Path) -> Answers:
            program = self.program(name)
            with self.programs.held(program, method, folder) as job:
                return self.asker.ask(folder, ["-p", str(job.pid)], virtual_plan(program))

        return self.programs.once(f"{name}-{method}", run)

    def core(self, name: str, method: str) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            program = self.program(name)
            with self.programs.held(program, method, folder) as job:
                core = make_core(job.pid, folder)
            return self.asker.ask(folder, [str(folder / name), "-c", str(core)], virtual_plan(program))

        return self.programs.once(f"{name}-{method}-core", run)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(Programs.in_folder(tmp_path_factory.mktemp("lldb-oracle")), Asker(Path(LLDB), PATIENCE))


@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
@pytest.mark.parametrize("name", ASKED)
def test_live(name: str, method: str, runs: Runs) -> None:
    program, native = runs.program(name), runs.native(name, OPTIONS.get(method, []))
    virtual = runs.live(name, method)
    found = differences(program, program.queries, [native], virtual)
    assert not found, found
    for query in program.queries:  # normalized, the original's address would look like a rank's
        if query.command.startswith("p &") and "-" not in query.command:
            own = [one[0] for one in (ADDRESS.findall(virtual.text(rank, query))[:1] for rank in range(RANKS)) if one]
            assert len(set(own)) == len(own), f"{query}: {own}"


@pytest.mark.parametrize(("name", "method"), [("cells", "pie"), ("shapes", "pie"), ("fields", "pip")])
def test_core(name: str, method: str, runs: Runs) -> None:
    program, natives = runs.program(name), [runs.native_core(name), runs.native(name, [])]
    found = differences(program, program.queries, natives, runs.core(name, method))
    assert not found, found


@pytest.mark.parametrize("name", ASKED)
def test_the_oracle_would_notice_a_wrong_rank(name: str, runs: Runs) -> None:
    check_that_processes_differ(runs.program(name), runs.native(name, []), normalize)
