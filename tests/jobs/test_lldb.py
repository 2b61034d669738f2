"""LLDB on one process of a job while ranks come and go: a breakpoint hits whoever is there, and travels with nobody."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.host.script import Told
from tests.support.job_programs import PROGRAMS
from tests.support.lldb.session import Session
from tests.support.running import Job

from .test_gdb import PROCESSES, RANKS, ROUNDS, visits, wait_for_processes, wandering

__all__ = ["wandering"]  # the fixture

STOPS = """
def hits(most=100):
    found = []
    process.Continue()
    while process.GetState() == lldb.eStateStopped and len(found) < most:
        thread = process.GetSelectedThread()
        frame = thread.GetFrameAtIndex(0)
        found.append([thread.GetName(), value("my_rank"), frame.GetFunctionName()])
        process.Continue()
    return found

def begin():
    open(GO, "w").close()
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(find_lldb(), tmp_path)


def attach(session: Session, job: Job, process: int, script: str) -> Told:
    """Run a script in LLDB on a process of the job; `begin()` lets the ranks go."""
    words = STOPS.replace("GO", repr(str(session.folder / "go"))) + script
    return session.attach(words, wait_for_processes(job)[process])


def check_end(job: Job, told: Told) -> None:
    """The job has ended as if nobody had looked."""
    assert job.finish() == 0, f"{job.stderr()}{told.facts}\n{told.output}"
    assert all(": 0 wrong" in line for line in job.lines) and len(job.lines) == RANKS * ROUNDS


@pytest.mark.parametrize("wandering", ["whole", "lean"], indirect=True)
@pytest.mark.parametrize("process", [0, 1])
def test_a_breakpoint_hits_those_who_are_there(process: int, wandering: Job, session: Session) -> None:
    script = """
ask("breakpoint set -n wrong_values")
begin()
tell("hits", hits())
tell("count", target.GetBreakpointAtIndex(target.GetNumBreakpoints() - 1).GetHitCount())
tell("exit", [process.GetState() == lldb.eStateExited, process.GetExitStatus()])
"""
    answers = attach(session, wandering, process, script)
    check_end(wandering, answers)
    assert all(name == f"rank {own}: running" and at == "wrong_values" for name, own, at in answers["hits"]), answers[
        "hits"
    ]
    expected = +visits(process)
    assert Counter(own for _, own, _ in answers["hits"]) == expected, f"{answers.facts}\n{answers.output}"
    assert answers["count"] == sum(expected.values()) and answers["exit"] == [True, 0]


def at_pending(process: int) -> Counter[int]:
    """How often each rank is in a process when it calls pending(), by what wander.c does."""
    found: Counter[int] = Counter()
    for rank in range(RANKS):
        at = rank * PROCESSES // RANKS
        for round_ in range(ROUNDS):
            at = (at + 1 + (round_ * rank) % 2) % PROCESSES
            found[rank] += at == process
            at = (at + 1) % PROCESSES
    return found


def test_conditions_and_counts_survive(wandering: Job, session: Session) -> None:
    """Ranks 2 and 3 come and go several times; one breakpoint is LLDB's own, one is ours."""
    script = """
ask("breakpoint set -n wrong_values -c 'my_rank == 3' -i 1")
ask("rank break pending 1-2 if my_rank == 2")
last = target.GetNumBreakpoints() - 1
begin()
tell("hits", hits())
tell("counts", [target.GetBreakpointAtIndex(last - index).GetHitCount() for index in (1, 0)])
"""
    answers = attach(session, wandering, 0, script)
    check_end(wandering, answers)
    conditional, of_ranks = visits(0)[3], at_pending(0)[2]
    assert (conditional, of_ranks) == (3, 6)
    stops = Counter((at, own) for _, own, at in answers["hits"])
    assert stops == {("wrong_values", 3): conditional - 1, ("pending", 2): of_ranks}, answers.output
    assert answers["counts"][0] == conditional


@pytest.mark.parametrize("command", ["thread step-over", "thread step-out", "thread until {next}"])
def test_a_step_ends_where_the_rank_leaves(command: str, wandering: Job, session: Session) -> None:
    """What LLDB steps by would leave with the rank, and kill the process where it arrives."""
    lines = (PROGRAMS / "wander.c").read_text().splitlines()
    call = next(number for number, line in enumerate(lines, 1) if "    MPIX_Migrate_to(process);" in line)
    place = "-n MPIX_Migrate_to" if "out" in command else f"-f wander.c -l {call}"
    script = f"""
ask("breakpoint set -o true {place}")
begin()
process.Continue()
name = process.GetSelectedThread().GetName()
tell("rank", int(name.split()[1].strip(":")))
tell("said", ask({command.format(next=call + 1)!r}))
tell("state", process.GetState() == lldb.eStateStopped)
tell("where", [ask("rank list %d" % told["rank"]), ask("rank %d" % told["rank"])])
process.Continue()
tell("exit", [process.GetState() == lldb.eStateExited, process.GetExitStatus()])
"""
    answers = attach(session, wandering, 0, script)
    check_end(wandering, answers)
    assert f"[Rank {answers['rank']} leaves this process, the step ends]" in answers["said"] + answers.output, (
        answers.output
    )
    assert answers["state"] and "rank_debug_event" in answers["said"]
    listed, selected = answers["where"]
    assert "migrated-out" in listed and "has migrated to process 1 of the job" in selected
    assert answers["exit"] == [True, 0], answers.output


def test_it_is_said_where_a_rank_went(wandering: Job, session: Session) -> None:
    script = """
ask("breakpoint set -n wrong_values")
begin()
process.Continue()
gone = [rank for rank in range(4) if "migrated-out" in ask("rank list %d" % rank)]
tell("gone", gone)
tell("rank", [ask("rank %d" % rank) for rank in gone])
tell("after", ask("rank list"))
tell("threads", ask("thread list"))
ask("breakpoint delete -f")
ask("detach")
"""
    answers = attach(session, wandering, 0, script)
    assert answers["gone"], answers["after"]
    assert all("process 1 of the job" in answer for answer in answers["rank"]), answers["rank"]
    assert not any(f"rank {rank}:" in answers["threads"] for rank in answers["gone"]), answers["threads"]
    wandering.process.send_signal(signal.SIGKILL)
