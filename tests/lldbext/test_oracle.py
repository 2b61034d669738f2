"""The measure of the LLDB extension: rank k is as process k would be, under LLDB on both sides.

The same source runs as virtual ranks in one process and, under MPICH, as one process per rank, each held at the same
place. LLDB answers the same questions about both; what `normalize` leaves must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb, holds_up_commands, lldb_version
from tests.support.gdb.places import make_core
from tests.support.host.plan import Answers, Query
from tests.support.lldb.oracle import ADDRESS, Asker, differences, normalize, virtual_plan
from tests.support.lldb.questions import NEVER_ASKED, PROGRAMS
from tests.support.lldb.session import Session
from tests.support.oracle.comparison import asked, check_that_processes_differ
from tests.support.oracle.program import ARGUMENT, MPICH, RANKS, Program, copied, virtual
from tests.support.running import Job, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

HOLDS_UP = holds_up_commands()


def marks(program: Program) -> list[pytest.MarkDecorator]:
    crashes = lldb_version() == 22 and str(program) == "shapes-O0"
    return [pytest.mark.skip("LLDB 22 crashes at a process of this program, without ranklens")] if crashes else []


@dataclass(frozen=True)
class Runs:
    """The answers about a program, from processes under MPICH and from virtual ranks."""

    asker: Asker
    shared: Shared

    def native(self, program: Program) -> Answers:
        """Each rank a process."""

        def run(folder: Path) -> Answers:
            return self.asker.natives(program, copied(program, MPICH, self.shared, folder), folder)

        return self._once(f"{program}.native", run)

    def native_core(self, program: Program) -> Answers:
        """Each rank a core file of its own process."""

        def run(folder: Path) -> Answers:
            return self.asker.native_cores(program, copied(program, MPICH, self.shared, folder), folder)

        return self._once(f"{program}.native-core", run)

    def live(self, program: Program) -> Answers:
        """All ranks in one process, to which LLDB attaches."""

        def run(folder: Path) -> Answers:
            job = held_job(program, folder, self.shared)
            try:
                return self.asker.ask(folder, ["-p", str(job.pid)], virtual_plan(program))
            finally:
                job.close()

        return self._once(f"{program}.live", run)

    def core(self, program: Program) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            job = held_job(program, folder, self.shared)
            try:
                make_core(job.pid, folder)
            finally:
                job.close()
            arguments = [str(built("rankrun").resolve()), "-c", str(folder / f"core.{job.pid}")]
            return self.asker.ask(folder, arguments, virtual_plan(program))

        return self._once(f"{program}.core", run)

    def _once(self, name: str, run: Callable[[Path], object]) -> Answers:
        return Answers.load(self.shared.made(f"{name}.lldb", run) / "answers")


def held_job(program: Program, folder: Path, shared: Shared) -> Job:
    executable = copied(program, virtual(), shared, folder)
    job = Job([str(built("rankrun")), "-n", str(RANKS), str(executable), ARGUMENT], folder)
    try:
        job.wait_for("holding")
        wait_until_it_loops(job.pid)
    except BaseException:
        job.close()
        raise
    return job


@pytest.fixture(scope="session")
def runs(shared: Shared) -> Runs:
    return Runs(Asker(find_lldb()), shared)


def groups() -> list[object]:
    return [
        pytest.param(program, frame, id=f"{program}-{frame or 'stack'}", marks=marks(program))
        for program in PROGRAMS
        for frame in dict.fromkeys(query.frame for query in program.queries)
    ]


def questions(program: Program, frame: str) -> list[Query]:
    """What is asked in a function, without what this LLDB shows by bytes that no code has set."""
    return [query for query in asked(program, frame) if HOLDS_UP or not query.command.endswith(" either")]


@pytest.mark.parametrize("program, frame", groups())
def test_live(program: Program, frame: str, runs: Runs) -> None:
    found = differences(program, questions(program, frame), [runs.native(program)], runs.live(program), HOLDS_UP)
    assert not found, found


@pytest.mark.parametrize("program, frame", groups())
def test_core(program: Program, frame: str, runs: Runs) -> None:
    natives = [runs.native_core(program), runs.native(program)]
    found = differences(program, questions(program, frame), natives, runs.core(program), HOLDS_UP)
    assert not found, found


@pytest.mark.parametrize(
    "program", [pytest.param(program, id=str(program), marks=marks(program)) for program in PROGRAMS]
)
def test_the_oracle_would_notice_a_wrong_rank(program: Program, runs: Runs) -> None:
    check_that_processes_differ(program, runs.native(program), normalize)


@pytest.mark.parametrize(
    "program", [pytest.param(program, id=str(program), marks=marks(program)) for program in PROGRAMS]
)
def test_every_rank_has_addresses_of_its_own(program: Program, runs: Runs) -> None:
    virtual = runs.live(program)
    for query in program.queries:
        if query.command.startswith("p &") and "-" not in query.command:
            found = [ADDRESS.findall(virtual.text(rank, query))[:1] for rank in range(RANKS)]
            addresses = [one[0] for one in found if one]
            assert len(set(addresses)) == len(addresses), f"{query}: {addresses}"


def test_rank_print_reads_qualified_names(runs: Runs, tmp_path: Path) -> None:
    program = next(program for program in PROGRAMS if program.name == "shapes")
    job = held_job(program, tmp_path, runs.shared)
    try:
        names = ("geometry::detail::v2::depth", "geometry::numbers.count_", "geometry::current->serial_")
        script = f"tell('answers', [ask('rank print ' + name) for name in {names!r}])\n"
        depth, count, serial = Session(runs.asker.lldb, tmp_path).attach(script, job.pid)["answers"]
    finally:
        job.close()
    assert depth == "".join(f"{rank}: {11 + rank}\n" for rank in range(RANKS))
    assert count == "".join(f"{rank}: {1 + rank}\n" for rank in range(RANKS))
    assert serial.count("<") == 0 and len(serial.splitlines()) == RANKS


def test_rank_print_reads_classes(runs: Runs, tmp_path: Path) -> None:
    """LLDB 14 loses members of classes in what its expressions give, in ordinary processes too."""
    program = next(program for program in PROGRAMS if program.name == "shapes")
    names = ("history", "members", "grid", "corners", "geometry::numbers", "couple")
    job = held_job(program, tmp_path, runs.shared)
    try:
        script = f"tell('answers', [ask('rank print ' + name).splitlines() for name in {names!r}])\n"
        history, members, grid, corners, numbers, couple = Session(runs.asker.lldb, tmp_path).attach(script, job.pid)[
            "answers"
        ]
    finally:
        job.close()
    ranks = range(RANKS)
    assert history == [f"{rank}: size=4 {{1, 2, 3, {100 * rank}}}" for rank in ranks]
    assert members == [f"{rank}: size=3 {{1, 2, {10 + rank}}}" for rank in ranks]
    assert grid == [
        f"{rank}: size=2 {{size=2 {{{rank / 2:g}, {rank / 2:g}}}, size=2 {{{rank / 2:g}, {rank / 2:g}}}}}"
        for rank in ranks
    ]
    assert corners[:2] == [
        f"{rank}: {{_M_elems = {{{{x = 0, y = 0}}, {{x = {rank}, y = {2 * rank}}}}}}}" for rank in (0, 1)
    ]
    assert all(re.fullmatch(rf"{rank}: {{items_ = .*, count_ = {1 + rank}}}", numbers[rank]) for rank in ranks), numbers
    assert all(re.match(rf"{rank}: {{<first> = {rank}, .*\bsecond of a pair\b", couple[rank]) for rank in ranks), couple


def test_enough_questions_are_asked() -> None:
    for language, least in (("cells", 150), ("shapes", 100), ("fields", 25)):
        assert len({query for program in PROGRAMS for query in program.queries if program.name == language}) >= least


def test_nothing_is_asked_that_says_nothing() -> None:
    for query in {query for program in PROGRAMS for query in program.queries}:
        assert not [never.reason for never in NEVER_ASKED if never.covers(query)], query
