"""GDB on one process of a job while ranks come and go: a breakpoint hits whoever is there, and travels with nobody."""

from __future__ import annotations

import shutil
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.targets import open_target
from tests.support.gdb.session import Session
from tests.support.job_programs import PROGRAMS, STEPS, Build, run
from tests.support.running import Job, StartJob
from tests.support.waiting import wait_until

from .test_checkpoint import wait_for_next, whole
from .test_processes import children

RANKS, PROCESSES, ROUNDS = 4, 2, 6


def visits(process: int) -> Counter[int]:
    """How often each rank is in a process when it calls wrong_values(), by what wander.c does."""
    found: Counter[int] = Counter()
    for rank in range(RANKS):
        at = rank * PROCESSES // RANKS
        for round_ in range(ROUNDS):
            at = (at + 1 + (round_ * rank) % 2 + 1) % PROCESSES
            found[rank] += at == process
    return found


@pytest.fixture
def session(gdb: Path, tmp_path: Path) -> Session:
    return Session(gdb, tmp_path)


@pytest.fixture
def wandering(start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Job:
    """A job that begins once the file `go` is there."""
    mode = getattr(request, "param", "whole")
    program = build("wander.c", "-O0")
    return start_job(
        rankrun, "-n", RANKS, "--procs", PROCESSES, "--migrate", mode, "--exit-on-deadlock", program, tmp_path / "go"
    )


def wait_for_processes(job: Job) -> list[int]:
    """The pids of the job's processes, once all have their ranks."""
    return wait_until(lambda: processes_of(job), "the job's processes did not come up")


def processes_of(job: Job) -> list[int]:
    found = children(job.pid)
    return found if len(found) == PROCESSES and are_running(found) else []


def are_running(pids: list[int]) -> bool:
    """Whether a rank runs in each process."""
    try:
        return all(any(rank.state == "running" for rank in decode(open_target(pid=pid)).ranks) for pid in pids)
    except RanklensError:
        return False


@pytest.mark.parametrize("wandering", ["whole", "lean"], indirect=True)
@pytest.mark.parametrize("process", [0, 1])
def test_a_breakpoint_hits_those_who_are_there(process: int, wandering: Job, session: Session, tmp_path: Path) -> None:
    pid = wait_for_processes(wandering)[process]
    answers = session.attach(
        f"""
        ask("break wrong_values")
        open({str(tmp_path / "go")!r}, "w").close()
        ranks = []
        while gdb.selected_inferior().pid and len(ranks) < 100:
            answer = ask("continue")
            if gdb.selected_inferior().pid:
                ranks.append([value("$_rank"), value("my_rank"), gdb.selected_frame().name()])
        tell("ranks", ranks)
        """,
        pid,
    )
    assert all(rank == own and name == "wrong_values" for rank, own, name in answers["ranks"]), answers["ranks"]
    assert Counter(rank for rank, _, _ in answers["ranks"]) == +visits(process)
    assert wandering.finish() == 0, wandering.stderr()
    assert all(": 0 wrong" in line for line in wandering.lines) and len(wandering.lines) == RANKS * ROUNDS


def test_no_checkpoint_has_a_breakpoint(
    start_job: StartJob, build: Build, rankrun: Path, session: Session, stepped: list[str], tmp_path: Path
) -> None:
    """A restart without GDB would meet it, and die of SIGTRAP."""
    folder, aside, go = tmp_path / "kept", tmp_path / "aside", tmp_path / "go"
    job = start_job(
        rankrun, "-n", RANKS, "--procs", PROCESSES, "--checkpoint", folder, "--every", 0.3, build("steps.c"), STEPS, go
    )  # fmt: skip
    pid = wait_for_processes(job)[0]
    lines = (PROGRAMS / "steps.c").read_text().splitlines()
    last = next(number for number, line in enumerate(lines, 1) if "MPI_Finalize" in line)

    def keep_one() -> None:
        wait_for_next(folder)
        shutil.copytree(whole(folder)[-1], aside)
        go.touch()

    keeper = threading.Timer(0, keep_one)
    keeper.start()
    answers = session.attach(
        f"""
        ask("handle SIG61 nostop noprint pass")
        ask("break steps.c:{last}")
        ranks = []
        while gdb.selected_inferior().pid and len(ranks) < 10:
            ask("continue")
            if gdb.selected_inferior().pid:
                ranks.append(value("$_rank"))
        tell("ranks", ranks)
        """,
        pid,
    )
    keeper.join()
    assert sorted(answers["ranks"]) == [0, 1], answers.output  # GDB has it again after each checkpoint
    assert job.finish() == 0, job.stderr()
    done = run("--restart", aside)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == stepped


@pytest.mark.parametrize("command", ["next", "finish", "until", "advance wrong_values"])
def test_a_step_ends_where_the_rank_leaves(command: str, wandering: Job, session: Session, tmp_path: Path) -> None:
    """What GDB steps by would leave with the rank, and kill the process where it arrives."""
    pid = wait_for_processes(wandering)[0]
    lines = (PROGRAMS / "wander.c").read_text().splitlines()
    call = next(number for number, line in enumerate(lines, 1) if "    MPIX_Migrate_to(process);" in line)
    place = "MPIX_Migrate_to" if command == "finish" else f"wander.c:{call}"
    answers = session.attach(
        f"""
        ask("tbreak {place}")
        open({str(tmp_path / "go")!r}, "w").close()
        ask("continue")
        tell("rank", value("$_rank"))
        tell("said", ask({command!r}))
        tell("alive", gdb.selected_inferior().pid)
        ask("continue")
        """,
        pid,
    )
    assert f"[Rank {answers['rank']} leaves this process, the step ends]" in answers["said"] + answers.output, (
        answers.output
    )
    assert answers["alive"] == pid
    assert wandering.finish() == 0, wandering.stderr()
    assert all(": 0 wrong" in line for line in wandering.lines) and len(wandering.lines) == RANKS * ROUNDS


def test_it_is_said_where_a_rank_went(wandering: Job, session: Session, tmp_path: Path) -> None:
    pid = wait_for_processes(wandering)[0]
    answers = session.attach(
        f"""
        ask("break wrong_values")
        open({str(tmp_path / "go")!r}, "w").close()
        ask("continue")
        gone = [rank for rank in range(4) if "migrated-out" in ask("rank list %d" % rank)]
        tell("gone", gone)
        tell("rank", [ask("rank %d" % rank) for rank in gone])
        tell("after", ask("rank list"))
        ask("delete")
        ask("detach")
        """,
        pid,
    )
    assert answers["gone"], answers["after"]
    assert all("process 1 of the job" in answer for answer in answers["rank"]), answers["rank"]
    wandering.process.send_signal(signal.SIGKILL)
