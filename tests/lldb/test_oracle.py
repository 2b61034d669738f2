"""The measure of the LLDB extension: rank k is as process k would be, under LLDB on both sides.

The same source runs as virtual ranks in one process and, under MPICH, as one process per rank, each held at the same
place. LLDB answers the same questions about both; what `normalize` leaves must be equal.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Optional

import pytest

from tests.conftest import ROOT, Job, built
from tests.gdb.conftest import make_core
from tests.host.controller import TIMEOUT, DebuggerFailedError
from tests.host.plan import PLAN_VARIABLE, Answers, Plan, Query
from tests.lldb.conftest import find_lldb
from tests.lldb.questions import NEVER_ASKED, PROGRAMS
from tests.lldb.session import EXTENSION, Session
from tests.oracle.comparison import asked, check_that_processes_differ
from tests.oracle.program import ARGUMENT, MPICH, RANKS, Program, copied, virtual
from tests.sharing import Shared
from tests.waiting import wait_until

SCRIPT = ROOT / "tests" / "lldb" / "in_lldb.py"
ADDRESS = re.compile(r"\b0x[0-9a-f]{9,16}\b")
FRAME = re.compile(r"^\s*\*? *frame #\d+: ADDRESS (\S+?)`(.*)$")
PLACE = re.compile(r"frame #\d+: ADDRESS \S+?`")
HEADER = re.compile(r"^\*? *thread #.*\n", re.MULTILINE)
EXPRESSION = re.compile(r"<user expression \d+>")
TURNS = 3  # clock ticks
RESULT = re.compile(r"\$\d+ = ")


def normalize(text: str, sources: Iterable[str]) -> str:
    """Without addresses, frames outside the program's sources, and the numbers of frames, threads and results."""
    text = HEADER.sub("", ADDRESS.sub("ADDRESS", text))
    text = RESULT.sub("$ = ", EXPRESSION.sub("<user expression>", text))
    own = re.compile(r" at (?:" + "|".join(map(re.escape, sources)) + r"):\d+(?::\d+)?(?: \[opt\])?$")
    kept = []
    for line in text.splitlines():
        if FRAME.match(line):
            if not own.search(line):
                continue
            line = PLACE.sub("frame ", line.replace("* ", "  "))
        kept.append(line.rstrip())
    return "\n".join(kept)


@dataclass(frozen=True)
class Runs:
    """The answers about a program, from processes under MPICH and from virtual ranks."""

    lldb: Path
    shared: Shared

    def native(self, program: Program) -> Answers:
        """Each rank a process, under an LLDB that knows nothing of us."""

        def run(folder: Path) -> Answers:
            with native_job(program, folder, self.shared) as processes:
                for pid, rank in processes:
                    self._ask(folder, ["-p", str(pid)], Plan((), program.queries), {"PMI_RANK": str(rank)})
            return Answers.load(folder / "answers")

        return self._once(f"{program}.native", run)

    def native_core(self, program: Program) -> Answers:
        """Each rank a core file of its own process: LLDB answers otherwise about cores."""

        def run(folder: Path) -> Answers:
            with native_job(program, folder, self.shared) as processes:
                for pid, _ in processes:
                    make_core(pid, folder)
            for pid, rank in processes:
                arguments = [str(folder / program.name), "-c", str(folder / f"core.{pid}")]
                self._ask(folder, arguments, Plan((), program.queries), {"PMI_RANK": str(rank)})
            return Answers.load(folder / "answers")

        return self._once(f"{program}.native-core", run)

    def live(self, program: Program) -> Answers:
        """All ranks in one process, to which LLDB attaches."""

        def run(folder: Path) -> Answers:
            job = held_job(program, folder, self.shared)
            try:
                return self._ask(folder, ["-p", str(job.pid)], virtual_plan(program))
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
            return self._ask(folder, arguments, virtual_plan(program))

        return self._once(f"{program}.core", run)

    def _once(self, name: str, run: Callable[[Path], object]) -> Answers:
        return Answers.load(self.shared.made(f"{name}.lldb", run) / "answers")

    def _ask(self, folder: Path, arguments: list[str], plan: Plan, more: Optional[dict[str, str]] = None) -> Answers:
        answers = folder / "answers"
        answers.mkdir(exist_ok=True)
        path = folder / "plan.json"
        replace(plan, answers=str(answers)).save(path)
        command = [str(self.lldb), "-x", "-b", *arguments, "-o", f"command script import {SCRIPT}"]
        environment = {**os.environ, **(more or {}), PLAN_VARIABLE: str(path), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            errors="replace",
        )
        found = Answers.load(answers)
        if "Traceback" in done.stderr + done.stdout or not found.ranks:
            raise DebuggerFailedError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return found


@contextmanager
def native_job(program: Program, folder: Path, shared: Shared) -> Iterator[list[tuple[int, int]]]:
    """A job under MPICH: (pid, rank) of its processes, each held."""
    executable = copied(program, MPICH, shared, folder)
    job = Job(["mpiexec.mpich", "-n", str(RANKS), str(executable), ARGUMENT], folder)
    try:
        job.wait_for("holding")
        processes = processes_of(executable)
        for pid, _ in processes:
            wait_for_turns(pid)
        yield processes
    finally:
        job.close()


def wait_for_turns(pid: int) -> None:
    """Wait until a process has used the processor: it polls, so it has come from its last message to where it waits."""
    start = ticks_of(pid)
    wait_until(lambda: ticks_of(pid) >= start + TURNS, f"process {pid} does not run")


def ticks_of(pid: int) -> int:
    """The processor time that a process has used, in clock ticks (proc(5), utime)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def virtual_plan(program: Program) -> Plan:
    return Plan((f"command script import {EXTENSION}",), program.queries, ranks=tuple(range(RANKS)))


def processes_of(executable: Path) -> list[tuple[int, int]]:
    """(pid, rank) of every process of an MPICH job."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "exe").resolve() == executable.resolve():
                words = (process / "environ").read_bytes().split(b"\0")
                found += [(int(process.name), int(word[9:])) for word in words if word.startswith(b"PMI_RANK=")]
    assert sorted(rank for _, rank in found) == list(range(RANKS))
    return found


def held_job(program: Program, folder: Path, shared: Shared) -> Job:
    executable = copied(program, virtual(), shared, folder)
    job = Job([str(built("rankrun")), "-n", str(RANKS), str(executable), ARGUMENT], folder)
    try:
        job.wait_for("holding")
    except BaseException:
        job.close()
        raise
    return job


@pytest.fixture(scope="session")
def runs(shared: Shared) -> Runs:
    return Runs(find_lldb(), shared)


def groups() -> list[object]:
    return [
        pytest.param(program, frame, id=f"{program}-{frame or 'stack'}")
        for program in PROGRAMS
        for frame in dict.fromkeys(query.frame for query in program.queries)
    ]


def differences(program: Program, queries: Iterable[Query], natives: Sequence[Answers], virtual: Answers) -> str:
    """Per rank and query that differ, a unified diff from the process's answer to the rank's.

    One of `natives` must say the same: LLDB can't read all of a process's core file, and says less about it than about
    the process itself.
    """
    found = []
    for query in queries:
        for rank in range(RANKS):
            expected = [normalize(native.text(rank, query), program.sources) for native in natives]
            actual = normalize(virtual.text(rank, query), program.sources)
            if query.command.startswith("target variable"):
                actual = actual[: len(expected[0])]  # the other ranks' follow
            if actual not in expected:
                lines = unified_diff(expected[0].splitlines(), actual.splitlines(), "process", "rank", n=1, lineterm="")
                found.append("\n".join([f"rank {rank}: {query}", *lines]))
    return "\n".join(found)


@pytest.mark.parametrize("program, frame", groups())
def test_live(program: Program, frame: str, runs: Runs) -> None:
    found = differences(program, asked(program, frame), [runs.native(program)], runs.live(program))
    assert not found, found


@pytest.mark.parametrize("program, frame", groups())
def test_core(program: Program, frame: str, runs: Runs) -> None:
    found = differences(
        program, asked(program, frame), [runs.native_core(program), runs.native(program)], runs.core(program)
    )
    assert not found, found


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_oracle_would_notice_a_wrong_rank(program: Program, runs: Runs) -> None:
    check_that_processes_differ(program, runs.native(program), normalize)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_rank_has_addresses_of_its_own(program: Program, runs: Runs) -> None:
    virtual = runs.live(program)
    for query in program.queries:
        if query.command.startswith("p &") and "-" not in query.command:
            found = [ADDRESS.findall(virtual.text(rank, query))[:1] for rank in range(RANKS)]
            addresses = [one[0] for one in found if one]
            assert len(set(addresses)) == len(addresses), f"{query}: {addresses}"


def test_rank_print_reads_qualified_names(runs: Runs, tmp_path: Path) -> None:
    program = next(one for one in PROGRAMS if one.name == "shapes")
    job = held_job(program, tmp_path, runs.shared)
    try:
        names = ("geometry::detail::v2::depth", "geometry::numbers.count_", "geometry::current->serial_")
        script = f"tell('answers', [ask('rank print ' + name) for name in {names!r}])\n"
        depth, count, serial = Session(runs.lldb, tmp_path).attach(script, job.pid)["answers"]
    finally:
        job.close()
    assert depth == "".join(f"{rank}: {11 + rank}\n" for rank in range(RANKS))
    assert count == "".join(f"{rank}: {1 + rank}\n" for rank in range(RANKS))
    assert serial.count("<") == 0 and len(serial.splitlines()) == RANKS


def test_enough_questions_are_asked() -> None:
    for language, least in (("cells", 150), ("shapes", 100), ("fields", 25)):
        assert len({query for program in PROGRAMS for query in program.queries if program.name == language}) >= least


def test_nothing_is_asked_that_says_nothing() -> None:
    for query in {query for program in PROGRAMS for query in program.queries}:
        assert not [never.reason for never in NEVER_ASKED if never.covers(query)], query
