"""The measure of the debugger extension: rank k is as process k would be.

The same source runs as virtual ranks in one process and, under MPICH, as one process per rank, each held at the same
place.  GDB answers the same questions about both; what `normalize` leaves must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import unified_diff

import pytest

from tests.support.host.plan import Answers, Query
from tests.support.oracle import c_program, cxx_program, fortran_program
from tests.support.oracle.comparison import asked, check_that_processes_differ
from tests.support.oracle.exceptions import NEVER_ASKED
from tests.support.oracle.normalize import normalize
from tests.support.oracle.program import RANKS, Program
from tests.support.oracle.runs import Runs

PROGRAMS = (*c_program.PROGRAMS, *cxx_program.PROGRAMS, *fortran_program.PROGRAMS)
IN_CORES = tuple(program for program in PROGRAMS if program.optimization == "-O0")
OWN_ADDRESS = re.compile(r"(0x[0-9a-f]{9,16}) <")


def groups(programs: Iterable[Program]) -> list[object]:
    """Every program with every function in whose frame something is asked."""
    return [
        pytest.param(program, frame, id=f"{program}-{frame or 'stack'}")
        for program in programs
        for frame in dict.fromkeys(query.frame for query in program.queries)
    ]


def differences(
    program: Program, queries: Iterable[Query], native: Answers, virtual: Answers, ranks: Iterable[int] = range(RANKS)
) -> str:
    """Per rank and query that differ, a unified diff from the process's answer to the rank's."""
    found = []
    for query in queries:
        for rank in ranks:
            expected = normalize(native.text(rank, query), program.sources)
            actual = normalize(virtual.text(rank, query), program.sources)
            if actual != expected:
                title = f"rank {rank}: {query}"
                lines = unified_diff(expected.splitlines(), actual.splitlines(), "process", "rank", n=1, lineterm="")
                found.append("\n".join([title, *lines]))
    return "\n".join(found)


@pytest.mark.parametrize("program, frame", groups(PROGRAMS))
def test_live(program: Program, frame: str, runs: Runs) -> None:
    found = differences(program, asked(program, frame), runs.native(program), runs.live(program))
    assert not found, found


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_rank_that_goes_on(program: Program, runs: Runs) -> None:
    """Steps, calls and breakpoints in the rank that runs bring it where they bring a process."""
    found = differences(program, program.walk, runs.native(program), runs.live(program), [RANKS - 1])
    assert not found, found
    refused = [query for query in program.walk if "error: " in runs.native(program).text(RANKS - 1, query)]
    assert not refused or program.optimization != "-O0", refused


@pytest.mark.parametrize("program, frame", groups(IN_CORES))
def test_core(program: Program, frame: str, runs: Runs) -> None:
    found = differences(program, asked(program, frame), runs.native(program), runs.core(program))
    assert not found, found


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_rank_has_addresses_of_its_own(program: Program, runs: Runs) -> None:
    """Normalized, the original's address would look like a rank's: no two ranks may name the same one."""
    virtual = runs.live(program)
    shared = []
    for query in program.queries:
        matches = [OWN_ADDRESS.search(virtual.text(rank, query)) for rank in range(RANKS)]
        addresses = [match.group(1) for match in matches if match]
        if query.command.startswith("print &") and len(set(addresses)) != len(addresses):
            shared.append(f"{query}: {addresses}")
    assert not shared, "\n".join(shared)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_oracle_would_notice_a_wrong_rank(program: Program, runs: Runs) -> None:
    check_that_processes_differ(program, runs.native(program), normalize)


def test_enough_commands_are_compared() -> None:
    """Commands, not questions: the same one in several frames and programs counts once."""
    asked = {query.command for program in PROGRAMS for query in program.queries}
    steps = {query.command for program in PROGRAMS for query in program.walk}
    assert len(asked) >= 500 and len(steps) >= 50


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_what_is_never_asked_is_not_asked(program: Program) -> None:
    asked_after_all = [query for query in program.queries if any(never.covers(query) for never in NEVER_ASKED)]
    assert not asked_after_all
