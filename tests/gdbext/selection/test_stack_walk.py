"""Stacks that are walked without a debugger, against GDB's own frames: functions, files, lines, inlined calls."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.cfi import without_parameters
from tests.oracle.test_oracle import IN_CORES, PROGRAMS
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.oracle.program import RANKS, Program, copied, virtual
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

COMPARE = f"""
from gdbext import extension
gdb.execute("set rank fold-runtime off")
found = {{}}
for rank in range({RANKS}):
    gdb.execute(f"rank {{rank}}")
    debugger = extension._extension.debugger
    moment = debugger.moment()
    frames = [[frame.function, frame.file.rpartition("/")[2], frame.line] for frame in debugger.frames(rank)]
    walked = moment.walker.stack(moment.rank(rank))
    calls = [[call.function, call.file.rpartition("/")[2], call.line] for call in reversed(walked.calls)]
    if calls[-1][1].endswith(".f90") and frames[-1][0] != "main":  # the compiler's, at which newer GDBs end before
        assert calls.pop()[0] == "main"
    found[rank] = [frames, calls, walked.ends]
tell("found", found)
"""


def check(found: dict[str, tuple[list[list[object]], list[list[object]], str]], sources: tuple[str, ...]) -> None:
    assert len(found) == RANKS
    for rank, (frames, calls, ends) in found.items():
        assert ends == "", f"rank {rank}: {ends}"
        for one in (*frames, *calls):
            one[0] = without_parameters(str(one[0]))
        own = [[frame for frame in one if frame[1] in sources] for one in (frames, calls)]
        pairs = itertools.zip_longest(*own)
        assert own[0] == own[1], f"rank {rank}: " + "; ".join(f"{a} is not {b}" for a, b in pairs if a != b)
        assert len(own[0]) >= 3
        # Libraries' files are named by debug information that only GDB looks for everywhere.
        assert [frame[0] for frame in frames] == [call[0] for call in calls], f"rank {rank}"


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_live(
    program: Program, session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    job = start_job(rankrun, "-n", RANKS, copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    check(session.attach(COMPARE, job.pid)["found"], program.sources)


@pytest.mark.parametrize("program", IN_CORES, ids=str)
def test_core(
    program: Program, session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    job = start_job(rankrun, "-n", RANKS, copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    core = make_core(job.pid, tmp_path)
    check(session.run(COMPARE, rankrun.resolve(), core)["found"], program.sources)
