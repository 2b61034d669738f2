"""What one processing element does while another one waits in the kernel, or has lent its memory to a child.

The oracle is the program: it says how often it has called a function, and where its instructions are.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.support.rsp import BASE, Client, connected, is_stopped, listening, served
from tests.support.running import ROOT, Job, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

SOURCE = ROOT / "tests" / "inspector" / "sources" / "beside.c"
TURNS, MORE_TURNS = 60, 600
SAID = r"rank (\d) is in process (\d+), 0x(\w+) 0x(\w+) 0x(\w+)"


@pytest.fixture
def go(tmp_path: Path) -> Path:
    return tmp_path / "go"


@pytest.fixture
def job(request: pytest.FixtureRequest, start_job: StartJob, shared: Shared, go: Path, tmp_path: Path) -> Job:
    program = shared.copied([built("rankcc"), "-g", "-O0", SOURCE], tmp_path / "beside")
    started = start_job(built("rankrun"), "-n", 2, "--pes", 2, program, getattr(request, "param", TURNS), go)
    started.wait_for("is in process", times=2)
    return started


def places(job: Job, rank: int) -> list[int]:
    """The process, work(), the system call of nap(), and libc's getppid()."""
    (found,) = (words for words in re.findall(SAID, "\n".join(job.lines)) if int(words[0]) == rank)
    return [int(found[1]), *(int(word, 16) for word in found[2:])]


def check_end(job: Job, turns: int = TURNS) -> None:
    assert job.finish() == 0, job.stderr()
    did = (0, sum(range(turns)))
    assert sorted(job.lines[2:]) == [f"rank {rank} did {did[rank]}, 0 failed" for rank in range(2)]


def thread(rank: int) -> str:
    return f"p{BASE + rank:x}.{BASE + rank:x}"


def word(client: Client, number: int) -> int:
    return int.from_bytes(bytes.fromhex(client.ask(f"p{number:x}")), "little")


def test_no_call_is_passed_while_a_child_has_the_memory(job: Job, go: Path) -> None:
    """A breakpoint can't be in memory then: the rank waits for the child instead."""
    pid, work, _, _ = places(job, 1)
    with served(pid, "--control") as client:
        client.start()
        client.attach(1)
        assert client.ask(f"Z0,{work:x},1") == "OK"
        go.touch()
        for turn in range(TURNS):
            assert client.ask("vCont;c") == f"T05thread:{thread(1)};swbreak:;"
            assert (word(client, 0x10), word(client, 5) & 0xFFFFFFFF) == (work, turn)
            assert client.ask(f"z0,{work:x},1") == "OK"
            assert client.ask(f"vCont;s:{thread(1)}") == f"T05thread:{thread(1)};"
            assert client.ask(f"Z0,{work:x},1") == "OK"
        assert client.ask("vCont;c") == f"W00;process:{BASE + 1:x}"
        check_end(job)


@pytest.mark.parametrize("alone", [False, True], ids=["with the others", "alone"])
def test_a_step_that_waits_in_the_kernel(alone: bool, job: Job, go: Path) -> None:
    """It ends after its instruction, however often another rank stops meanwhile at a breakpoint that is not its own."""
    pid, _, nap, parent = places(job, 0)
    with served(pid, "--control") as client:
        client.start()
        client.attach(0)
        assert client.ask(f"Z0,{nap:x},1") == client.ask(f"Z0,{parent:x},1") == "OK"
        go.touch()
        assert client.ask("vCont;c") == f"T05thread:{thread(0)};swbreak:;"
        assert client.ask(f"z0,{nap:x},1") == "OK"
        others = "" if alone else f";c:p{BASE:x}.-1"
        assert client.ask(f"vCont;s:{thread(0)}{others}") == f"T05thread:{thread(0)};"
        assert word(client, 0x10) == nap + 2
        assert client.ask("D") == "OK"
        check_end(job)


@pytest.mark.parametrize("job", [MORE_TURNS], indirect=True)
def test_a_client_that_vanishes_at_a_breakpoint(job: Job, go: Path) -> None:
    """Whatever a thread meets at that moment does not end the job, nor a child."""
    pid, _, _, parent = places(job, 0)
    with listening(pid, "--control", "--port", 0) as (address, _):
        go.touch()
        for attempt in range(20):
            client = connected(address)
            client.start()
            assert client.attach(0).startswith("T05")
            assert client.ask(f"Z0,{parent:x},1") == "OK"
            client.send("vCont;c")
            time.sleep(0.002 * attempt)
            client.close()
            wait_until(lambda: not is_stopped(pid), "the job is still traced")
        assert job.lines[2:] == [], "it has run all the time"
        check_end(job, MORE_TURNS)
