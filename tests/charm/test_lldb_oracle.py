"""The measure of the LLDB extension on stock AMPI: rank k is as process k of the same source under MPICH would be.

Programs and questions are those of tests/support/lldb/questions.py, but for what charm/oracle.py says of main; those of
optimized programs are not asked: MPI's header decides about registers there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.charm.test_lldb import LLDB
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
from tests.support.charm.shared_variables import is_shared, of_every_rank, truth
from tests.support.host.plan import Answers, Plan
from tests.support.lldb.oracle import ADDRESS, Asker, differences, normalize, virtual_plan
from tests.support.lldb.questions import PROGRAMS
from tests.support.oracle.comparison import check_that_processes_differ
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import RANKS, Program
from tests.support.sharing import Shared

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
# The same names are asked for in frames of the program's.
ABOUT_THE_PROGRAM = NeverAsked(r": p .*", "in frames of MPI's LLDB speaks C++, and refuses thread-local variables")
PAST_THE_END = NeverAsked(
    r".*: p (cells|cells\[rank\])", "shows what lies behind: letters without an end, a fourth cell"
)
AS_IT_COMES = NeverAsked(
    r".*: target variable (couple|either)", "whether LLDB knows the string inside depends on what it has met before"
)
NEVER_ASKED_UNDER = {
    "fs": (AS_IT_COMES,),
    "tls": (
        ABOUT_THE_PROGRAM,
        PAST_THE_END,
        AS_IT_COMES,
        NeverAsked(r".*: frame variable( --no-args)?", "of thread-local variables LLDB lists none of a rank's"),
        NeverAsked(r".*(settings_|__BLNK__).*", "COMMON blocks are one for all ranks"),
    ),
    "none": (ABOUT_THE_PROGRAM, PAST_THE_END),
}
ASKED = {program.name: program for program in PROGRAMS if program.optimization == "-O0"}
# How LLDB without us comes to the rank that runs: in SMP builds that is not on the first thread.
ALONE = (
    "script process = lldb.debugger.GetSelectedTarget().GetProcess()",
    "script [process.SetSelectedThread(one) for one in process if one.frame[0].name == 'hold_running']",
)


@dataclass(frozen=True)
class Runs:
    """Answers about the programs."""

    programs: Programs
    asker: Asker

    def program(self, name: str, method: str) -> Program:
        never = NEVER_ASKED_OF_DEBUG_BUILDS.get(name, ()) if is_debug_build() else ()
        program, here = ASKED[name], NEVER_ASKED_UNDER.get(method, ())
        queries = (
            query
            for query in program.queries
            if not any(re.fullmatch(which.pattern, f"{query.frame}: {query.command}") for which in here)
        )
        return self.programs.program(replace(program, queries=tuple(queries)), never)

    def native(self, name: str, method: str) -> Answers:
        """Each rank a process under MPICH, in an LLDB that knows nothing of us."""
        method = like(ASKED[name], method)
        program = self.program(name, method)

        def run(folder: Path) -> None:
            self.asker.natives(program, self.programs.as_processes(program, method), folder)

        return answers_in(self._made(f"{name}-{method}-native", run))

    def native_core(self, name: str, method: str) -> Answers:
        method = like(ASKED[name], method)
        program = self.program(name, method)

        def run(folder: Path) -> None:
            self.asker.native_cores(program, self.programs.as_processes(program, method), folder)

        return answers_in(self._made(f"{name}-{method}-native-core", run))

    def live(self, name: str, method: str) -> Path:
        """All ranks in one process, to which LLDB attaches: the folder of the answers."""
        program = self.program(name, method)

        def run(folder: Path) -> None:
            with self.programs.held(program, method, folder) as job:
                self._ask(program, method, folder, ["-p", str(job.pid)])

        return self._made(f"{name}-{method}-live", run)

    def core(self, name: str, method: str, writer: str) -> Path:
        """All ranks in one core file: the folder of the answers."""
        program = self.program(name, method)

        def run(folder: Path) -> None:
            with self.programs.held(program, method, folder) as job:
                core = core_of(job, folder, writer)
            self._ask(program, method, folder, [str(folder / name), "-c", str(core)])

        return self._made(f"{name}-{method}-core", run)

    def true(self, name: str, method: str, folder: Path, natives: Answers) -> Answers:
        """What is to be said of the job whose answers are in a folder."""
        if method != "none":
            return natives
        return truth(self.program(name, method), natives, answers_in(alone_in(folder)))

    def _ask(self, program: Program, method: str, folder: Path, target: list[str]) -> None:
        if method == "none":
            self.asker.ask(alone_in(folder), target, Plan(ALONE, program.queries))
        self.asker.ask(folder, target, virtual_plan(program))

    def _made(self, name: str, run: Callable[[Path], None]) -> Path:
        return self.programs.shared.made(f"ampi-{name}.lldb", run)


@pytest.fixture(scope="session")
def runs(shared: Shared) -> Runs:
    return Runs(Programs(shared), Asker(Path(LLDB), PATIENCE))


def unequal(runs: Runs, name: str, method: str, folder: Path, natives: list[Answers]) -> str:
    """What differs in the answers that are in a folder."""
    program, virtual = runs.program(name, method), answers_in(folder)
    queries = program.queries if method != "none" else of_every_rank(program)
    return differences(program, queries, [runs.true(name, method, folder, native) for native in natives], virtual)


@pytest.mark.parametrize("method", LIVE)
@pytest.mark.parametrize("name", ASKED)
def test_live(name: str, method: str, runs: Runs) -> None:
    folder = runs.live(name, method)
    found = unequal(runs, name, method, folder, [runs.native(name, method)])
    assert not found, found
    if method == "none":
        return
    program = runs.program(name, method)
    for query in program.queries:  # normalized, the original's address would look like a rank's
        is_address = query.command.startswith("p &") and "-" not in query.command
        if is_address and (method != "tls" or is_shared(program, query)):  # under tls code is one for all
            texts = [answers_in(folder).text(rank, query) for rank in range(RANKS)]
            own = [one[0] for one in (ADDRESS.findall(text)[:1] for text in texts) if one]
            assert len(set(own)) == len(own), f"{query}: {own}"


# Each method's and each language's, by either writer; not all of GDB's, because a process takes LLDB seconds for each.
IN_LLDB = (0, 1, 4, 5, 9, 10, 11, 14, 15, 16)


@pytest.mark.parametrize(("name", "method", "writer"), [CORES[number] for number in IN_LLDB])
def test_core(name: str, method: str, writer: str, runs: Runs) -> None:
    natives = [runs.native_core(name, method), runs.native(name, method)]
    found = unequal(runs, name, method, runs.core(name, method, writer), natives)
    assert not found, found


@pytest.mark.parametrize("name", ASKED)
def test_the_oracle_would_notice_a_wrong_rank(name: str, runs: Runs) -> None:
    check_that_processes_differ(runs.program(name, "pie"), runs.native(name, "pie"), normalize)
