"""What an oracle with LLDB on both sides needs, whichever runtime the ranks are of: questions asked, answers compared.

Takes a program, an LLDB and processes; gives answers without what must differ (`normalize`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Optional

from pieglobalsfind.jobs.processes import descendants, processes
from tests.support.gdb.places import make_core
from tests.support.host.controller import TIMEOUT, DebuggerFailedError
from tests.support.host.plan import PLAN_VARIABLE, Answers, Plan, Query
from tests.support.lldb.index import index_options
from tests.support.lldb.session import EXTENSION
from tests.support.mpich import mpiexec, rank_in
from tests.support.oracle.program import ARGUMENT, RANKS, Program
from tests.support.running import ROOT, Job
from tests.support.waiting import wait_until

SCRIPT = ROOT / "tests" / "support" / "lldb" / "in_lldb.py"
ADDRESS = re.compile(r"\b0x[0-9a-f]{9,16}\b")
FRAME = re.compile(r"^\s*\*? *frame #\d+: ADDRESS \S+$|^\s*\*? *frame #\d+: ADDRESS (\S+?)`(.*)$")
PLACE = re.compile(r"frame #\d+: ADDRESS \S+?`")
HEADER = re.compile(r"^\*? *thread #.*\n", re.MULTILINE)
EXPRESSION = re.compile(r"<user expression \d+>")
USER_FILE = re.compile(r"\.user(?:\.\d+)?\.so(?=`|$)", re.MULTILINE)
TURNS = 3  # clock ticks
RESULT = re.compile(r"\$\d+ = ")
# LLDB 23 says which frame has a language without expressions: the innermost, of a library, which is another one there.
NO_LANGUAGE = re.compile(r"(?m)^note: (?:Expression evaluation in [\w ]+ not supported\. )?(?=Falling back)")
DIE = re.compile(r"(?<=\$__lldb_func::)0x[0-9a-f]+:0x[0-9a-f]+")  # LLDB's number of a module, and a place in its file
NULL = re.compile(r"\bnullptr\b")  # C++'s word also in C, where the innermost frame is of a library without lines
# LLDB 14 shows a string in a container by its members: a buffer that may not be in use, and what lies in it by chance.
BUFFER = re.compile(r'_M_local_buf = ".*", _M_allocated_capacity = \d+')
# LLDB 21 shows an array of characters in a union without a name as if the bytes after it were of the array, too.
AFTER_ARRAY = re.compile(r'(?<=letters = "rnk\d).*(?="\))')
# What an LLDB that holds no commands up prints instead of a value (docs/lldb.md): an error, or a result without any.
EVALUATING = ("p ", "p/", "po ", "expr", "call ", "print ", "x/", "memory read", "source list -n")
NO_VALUE = re.compile(r"(?s)|\$\d+ =|error: .*|.*\b(?:is ambiguous|use of undeclared identifier)\b.*")


def normalize(text: str, sources: Iterable[str]) -> str:
    """Without addresses, frames outside the program's sources, and the numbers of frames, threads and results.

    AMPI has a program's code in a file beside it, whose name says so.
    """
    text = USER_FILE.sub("", text)
    text = HEADER.sub("", ADDRESS.sub("ADDRESS", text))
    text = BUFFER.sub("BUFFER", NULL.sub("NULL", text))
    text = NO_LANGUAGE.sub("note: ", DIE.sub("ADDRESS", AFTER_ARRAY.sub("", text)))
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
class Asker:
    """An LLDB that is taken to hang after `timeout` seconds."""

    lldb: Path
    timeout: float = TIMEOUT

    def natives(self, program: Program, executable: Path, folder: Path) -> Answers:
        """Each rank a process, under an LLDB that knows nothing of us."""
        with native_job(executable, folder) as processes:
            for pid, rank in processes:
                self.ask(folder, ["-p", str(pid)], Plan((), program.queries), {"PMI_RANK": str(rank)})
                hold_still(pid)
        return Answers.load(folder / "answers")

    def native_cores(self, program: Program, executable: Path, folder: Path) -> Answers:
        """Each rank a core file of its own process: LLDB answers otherwise about cores."""
        with native_job(executable, folder) as processes:
            for pid, _ in processes:
                make_core(pid, folder)
                hold_still(pid)
        for pid, rank in processes:
            arguments = [str(executable), "-c", str(folder / f"core.{pid}")]
            self.ask(folder, arguments, Plan((), program.queries), {"PMI_RANK": str(rank)})
        return Answers.load(folder / "answers")

    def ask(self, folder: Path, arguments: list[str], plan: Plan, more: Optional[dict[str, str]] = None) -> Answers:
        answers = folder / "answers"
        answers.mkdir(exist_ok=True)
        path = folder / "plan.json"
        replace(plan, answers=str(answers)).save(path)
        command = [str(self.lldb), "-x", "-b", *index_options(), *arguments, "-o", f"command script import {SCRIPT}"]
        settings = {PLAN_VARIABLE: str(path), "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}
        environment = {**os.environ, **(more or {}), **settings}
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
            errors="replace",
        )
        found = Answers.load(answers)
        if "Traceback" in done.stderr + done.stdout or not found.ranks:
            raise DebuggerFailedError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return found


@contextmanager
def native_job(executable: Path, folder: Path) -> Iterator[list[tuple[int, int]]]:
    """A job under MPICH: (pid, rank) of its processes, each held."""
    job = Job([*mpiexec(), "-n", str(RANKS), str(executable), ARGUMENT], folder)
    try:
        job.wait_for("holding")
        found = processes_of(job.pid, executable)
        for pid, _ in found:
            wait_for_turns(pid)
        for pid, _ in found:
            hold_still(pid)
        yield found
    finally:
        job.close()


def hold_still(pid: int) -> None:
    """Stop a process that polls: while LLDB asks another one, it would take a processor. A detach lets it go on."""
    os.kill(pid, signal.SIGSTOP)


def wait_for_turns(pid: int) -> None:
    """Wait until a process has used the processor: it polls, so it has come from its last message to where it waits."""
    start = ticks_of(pid)
    wait_until(lambda: ticks_of(pid) >= start + TURNS, f"process {pid} does not run")


def ticks_of(pid: int) -> int:
    """The processor time that a process has used, in clock ticks (proc(5), utime)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def virtual_plan(program: Program) -> Plan:
    return Plan((f"command script import {EXTENSION}",), program.queries, ranks=tuple(range(RANKS)))


def processes_of(launcher: int, executable: Path) -> list[tuple[int, int]]:
    """(pid, rank) of every process of an MPICH job; another test may run the same program."""
    found = []
    for pid in descendants(launcher, processes()):
        process = Path(f"/proc/{pid}")
        with suppress(OSError):
            if (process / "exe").resolve() == executable.resolve():
                words = (process / "environ").read_bytes().decode(errors="replace").split("\0")
                found.append((pid, rank_in(dict(word.split("=", 1) for word in words if "=" in word))))
    assert sorted(rank for _, rank in found) == list(range(RANKS))
    return found


def differences(
    program: Program,
    queries: Iterable[Query],
    natives: Sequence[Answers],
    virtual: Answers,
    must_answer: bool = True,
) -> str:
    """Per rank and query that differ, a unified diff from the process's answer to the rank's.

    One of `natives` must say the same: LLDB can't read all of a process's core file, and says less about it than about
    the process itself. Without `must_answer` a command that evaluates may print no value of a rank, but no other one.
    """
    found = []
    for query in queries:
        for rank in range(RANKS):
            expected = [normalize(native.text(rank, query), program.sources) for native in natives]
            actual = normalize(virtual.text(rank, query), program.sources)
            if query.command.startswith("target variable"):
                actual = actual[: len(expected[0])]  # the other ranks' follow
            if not must_answer and query.command.startswith(EVALUATING) and NO_VALUE.fullmatch(actual.strip()):
                continue
            if actual not in expected:
                lines = unified_diff(expected[0].splitlines(), actual.splitlines(), "process", "rank", n=1, lineterm="")
                found.append("\n".join([f"rank {rank}: {query}", *lines]))
    return "\n".join(found)
