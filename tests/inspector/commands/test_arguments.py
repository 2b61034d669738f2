"""The arguments of calls on suspended ranks' stacks: against GDB's, and against what the runtime publishes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import pytest

from inspector.job.job import Job, open_job
from pieglobalsfind.decoders.mpi_constants import Convention
from pieglobalsfind.model import Absent
from pieglobalsfind.mpi.call_signatures import waiting
from pieglobalsfind.stacks.frame_arguments import RankStack, Where, stack_of
from pieglobalsfind.stacks.unwind import Walker
from tests.support.gdb.session import Session
from tests.support.inspector.ranks import SOURCES
from tests.support.running import StartJob
from tests.support.sharing import Shared

RANKS = 4
EMBEDDED = Convention(1, 2, -2, -1, -1)  # runtime-hooks/embedded/mpi/include/mpi.h
NAMES = {"first", "peer", "tag", "root", "count", "source", "comm", "dest"}
PROGRAMS = [("c", "-O0"), ("c", "-O2"), ("cpp", "-O2"), ("f90", "-O0"), ("f90", "-O2")]
TRUTH = {
    (0, "wait_for", "first"): 7,
    (0, "wait_for", "peer"): 1,
    (0, "wait_for", "tag"): 41,
    (1, "wait_for", "first"): 17,
    (1, "wait_for", "peer"): 2,
    (1, "wait_for", "tag"): 42,
    (1, "forgotten", "first"): 17,
    (1, "forgotten", "peer"): 2,
    (1, "forgotten", "tag"): 42,
}
Start = Callable[..., int]

ASK = """
found = {}
for rank in range(RANKS):
    gdb.execute(f"rank {rank}", to_string=True)
    frame, found[rank] = gdb.newest_frame(), []
    while frame is not None and frame.is_valid():
        if frame.type() == gdb.NORMAL_FRAME and frame.function() is not None:
            frame.select()
            found[rank].append((frame.pc(), ask("frame").splitlines()[0]))
        frame = frame.older()
tell("frames", found)
"""


@pytest.fixture
def start(
    tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, rankcxx: Path, rankfort: Path, start_job: StartJob
) -> Start:
    def started(language: str, option: str, debug: str = "-g") -> int:
        binary = tmp_path / f"arguments.{language}{option}.so"
        if language == "f90":
            made = shared.copied([rankfort, "-g", option, SOURCES / "arguments.f90"], binary)
        else:
            source = tmp_path / f"arguments.{language}"
            shutil.copy(SOURCES / "arguments.c", source)
            blocked = tmp_path / "blocked.o"
            for command in (
                [rankcc, debug, "-O2", "-c", SOURCES / "blocked.c", "-o", blocked],
                [rankcxx if language == "cpp" else rankcc, "-g", option, f"-I{SOURCES}", source, blocked, "-o", binary],
            ):
                subprocess.run([str(word) for word in command], check=True, timeout=120)
            made = binary
        job = start_job(rankrun, "-n", RANKS, made)
        job.wait_for("ready")
        job.wait_until_still()
        return job.pid

    return started


def walker_of(job: Job) -> Walker:
    return Walker(job.target, job.table, job.translator, job.contexts, job.symbolizer)


def shown(line: str) -> dict[str, str]:
    """What GDB shows of integers: with `entry-values both` also of what was passed (`peer@entry=2`)."""
    return dict(re.findall(r"([\w@]+)=(-?\d+|<optimized out>)(?=[,)])", line))


def expected(told: dict[str, str], name: str) -> Optional[int]:
    """What was passed, else what it is now; None if GDB knows neither."""
    passed, now = told.get(f"{name}@entry", "<"), told.get(name, "<")
    text = now if passed.startswith("<") else passed
    return None if text.startswith("<") else int(text)


@pytest.mark.parametrize(("language", "option"), PROGRAMS)
def test_what_gdb_says(language: str, option: str, start: Start, gdb: Path, tmp_path: Path) -> None:
    """Of every function on every stack that has such arguments, the program's and the runtime's."""
    pid = start(language, option)
    script = f"RANKS = {RANKS}\ngdb.execute('set print entry-values both')\n{ASK}"
    answers = Session(gdb, tmp_path).attach(script, pid)["frames"]
    assert isinstance(answers, dict)
    job = open_job(str(pid), None)
    walker = walker_of(job)
    compared: dict[str, set[Optional[int]]] = {}
    for rank in job.table.ranks:
        found = walker.activations(rank)
        assert found is not None
        stack, lines = RankStack(walker, *found), dict(map(tuple, answers[str(rank.rank)]))
        for frame, activation in enumerate(found[0]):
            place, values = walker.place(activation.lookup), shown(lines.get(activation.pc, ""))
            if isinstance(place, Absent) or not values:
                continue
            reader = walker.arguments(place[0])
            calls = reader.calls(place[1]) if reader is not None else None
            assert calls is not None
            names = list(calls.calls[-1].parameters)
            for at in (at for at, name in enumerate(names) if name in NAMES & values.keys()):
                function = stack.functions(frame)[-1].rpartition("::")[2]
                is_reference = (language, function) == ("f90", "wait_for")
                ours = (stack.pointed_at if is_reference else stack.integer)(Where(frame, at, len(names)))
                gdbs = expected(values, names[at])
                known = None if isinstance(ours, Absent) else ours
                if gdbs is None:  # GDB does not believe all that callers in copies say
                    gdbs = TRUTH.get((rank.rank, function, names[at])) if known is not None else None
                if (known, rank.rank, function) == (None, 2, "wait_for"):
                    continue  # GDB knows that relay() can have jumped there alone; without -g of it nobody does
                assert known == gdbs, (rank.rank, lines[activation.pc], ours)
                compared.setdefault(function, set()).add(known)
    if language != "f90":
        assert {6, 1, 41} <= compared["asked"]  # `first` is 6: there are no arguments but the program
        assert {2, 0} <= compared["broadcast"]
        assert option == "-O0" or {1, 41, 2, 42} <= compared["wait_for"]


@pytest.mark.parametrize(("language", "option"), PROGRAMS)
def test_what_the_runtime_publishes(language: str, option: str, start: Start) -> None:
    """Of a runtime without debug information, as `librankmpi.so` is, callers tell, if they are optimized.

    Nothing is told that is not so; of rank 2, which relay() has brought there, and without optimization nothing is.
    """
    job = open_job(str(start(language, option)), None)
    walker = walker_of(job)
    for rank in job.table.ranks:
        stack = stack_of(walker, rank)
        assert stack is not None and rank.waiting is not None
        frame = next(at for at in range(len(stack)) if rank.waiting.call in stack.functions(at))
        found = waiting(stack, frame, rank.waiting.call, rank.rank, EMBEDDED)
        peer = 0 if rank.waiting.call == "MPI_Bcast" else rank.waiting.peer  # the root, not who passes its data on
        published = (peer, rank.waiting.tag, rank.waiting.communicator)
        if option == "-O2" and (rank.rank != 2 or language == "f90"):
            assert (found.peer, found.tag, found.communicator, found.unknown) == (*published, ""), found
            assert found.in_world
        else:
            assert "its function has no debug information, and its caller's does not say" in found.unknown
            assert all(
                one in (-2, 0, truth) for one, truth in zip((found.peer, found.tag, found.communicator), published)
            )


def test_a_function_without_debug_information(start: Start) -> None:
    """What its caller passes tells, unless another function has jumped there: then nothing is believed."""
    job = open_job(str(start("c", "-O2", "-g0")), None)
    walker = walker_of(job)
    told = {}
    for rank in job.table.ranks[:3]:
        stack = stack_of(walker, rank)
        assert stack is not None
        frame = next(at for at in range(len(stack)) if stack.functions(at) == ("wait_for",))
        told[rank.rank] = [stack.integer(Where(frame, place, 3)) for place in range(3)]
    assert told[0][1:] == [1, 41]
    assert all(isinstance(one, Absent) for one in told[2]), told
    for one in told[2]:
        assert "its caller's does not say which function it calls" in str(getattr(one, "reason", one))
    assert told[1] == [17, 2, 42]
