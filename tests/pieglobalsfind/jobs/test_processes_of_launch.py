"""Launches told apart in tables of processes as launchers make them, sound ones and such with copies and strangers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest

from pieglobalsfind.jobs.processes import VARIABLES, HostProcess, ancestors, descendants, environment, processes
from pieglobalsfind.jobs.processes_of_launch import JobPosition, Launch, launch_of, launches_below

PROGRAM = "/home/user/solver"


class Host:
    """A table of processes; each has its place, if it holds ranks."""

    def __init__(self) -> None:
        self.known: dict[int, HostProcess] = {}
        self.places: dict[int, JobPosition] = {}

    def start(self, pid: int, parent: int, program: str, launch: str = "", step: str = "") -> int:
        self.known[pid] = HostProcess(pid, parent, program, launch, (launch, step and "7", step))
        return pid

    def rank(self, pid: int, parent: int, index: int, count: int, launch: str = "", step: str = "") -> int:
        self.places[pid] = JobPosition(index, count)
        return self.start(pid, parent, PROGRAM, launch, step)

    def launch(self, pid: int) -> Launch:
        return launch_of(pid, self.known, self.places.get)

    def below(self, pid: int) -> list[Launch]:
        return launches_below(pid, self.known, self.places.get)


def of(*pids: int, count: Optional[int] = None, name: str = "") -> Launch:
    return Launch(name, tuple(enumerate(pids)), count or len(pids))


def test_two_mpiruns_of_one_shell_are_two_jobs() -> None:
    host = Host()
    host.start(10, 1, "/bin/bash")
    for first in (100, 200):
        host.start(first, 10, "/usr/bin/mpiexec.hydra")
        host.start(first + 1, first, "/usr/bin/hydra_pmi_proxy")
        for index in range(3):
            host.start(first + 10 + index, first + 1, "/bin/sh")  # a wrapper around each
            host.rank(first + 20 + index, first + 10 + index, index, 3)
    for first in (100, 200):
        expected = of(first + 20, first + 21, first + 22)
        assert [host.launch(first + 20 + index) for index in range(3)] == [expected] * 3
        assert host.below(first) == host.below(first + 1) == host.below(first + 11) == [expected]
    assert len(host.below(10)) == 2


def test_two_proxies_of_one_launch_are_one_job() -> None:
    host = Host()
    host.start(100, 1, "/usr/bin/mpiexec.hydra")
    for index in range(4):
        proxy = 101 + index // 2
        host.start(proxy, 100, "/usr/bin/hydra_pmi_proxy")
        host.rank(110 + index, proxy, index, 4)
    assert host.launch(113) == of(110, 111, 112, 113)


def test_halves_of_two_launches_are_no_whole() -> None:
    """Each has its other half on another host."""
    host = Host()
    host.start(10, 1, "/bin/bash")
    for first, index in ((100, 0), (200, 2)):
        host.start(first, 10, "/usr/bin/mpirun")
        host.rank(first + 1, first, index, 4)
        host.rank(first + 2, first, index + 1, 4)
    assert host.launch(101) == Launch("", ((0, 101), (1, 102)), 4)
    assert host.launch(202) == Launch("", ((2, 201), (3, 202)), 4)


def test_a_launcher_that_nobody_knows() -> None:
    """The fewest processes that are a whole job; where two would be mixed, what is surely one's own."""
    host = Host()
    host.start(10, 1, "/bin/bash")
    for first in (100, 200):
        host.start(first, 10, "/opt/site/bin/start")
        for index in range(2):
            host.rank(first + 1 + index, first, index, 2)
    assert host.launch(102) == of(101, 102)
    del host.known[202], host.places[202]
    assert host.launch(201) == of(201, count=2)


def test_the_environment_s_name_decides() -> None:
    """Whoever is above: ssh has left one launch to the first process, and the other's processes forked each other."""
    host = Host()
    for first, name in ((100, "10.0.0.1 4000 99 0"), (200, "10.0.0.1 4001 199 0")):
        for index in range(3):
            host.rank(first + index, 1 if first == 100 else max(1, first + index - 1), index, 3, name)
    assert host.launch(101) == of(100, 101, 102, name="10.0.0.1 4000 99 0")
    assert host.launch(202) == of(200, 201, 202, name="10.0.0.1 4001 199 0")


def test_a_name_that_was_inherited_by_two_launches_decides_nothing() -> None:
    host = Host()
    name = "10.0.0.1 4000 99 0"
    for first in (100, 200):
        host.start(first, 10, "/usr/bin/mpirun", name)
        for index in range(2):
            host.rank(first + 1 + index, first, index, 2, name)
    assert host.launch(101) == of(101, 102)
    assert host.launch(202) == of(201, 202)


def test_steps_of_a_batch_job_are_told_apart() -> None:
    """Their daemons may be one's children, or lost."""
    host = Host()
    host.start(10, 1, "/bin/bash")
    for first, step in ((100, "7.0"), (200, "7.1")):
        for index in range(2):
            host.rank(first + index, 10, index, 2, step=step)
    assert host.launch(100) == of(100, 101)
    assert host.launch(201) == of(200, 201)


def test_copies_and_strangers_are_no_members() -> None:
    """A process that forks for a moment, another program, another size, a process that may not be read."""
    host = Host()
    host.start(100, 1, "/usr/bin/mpirun")
    host.rank(101, 100, 0, 2)
    host.rank(102, 100, 1, 2)
    host.rank(103, 102, 1, 2)  # forked
    host.rank(104, 100, 0, 3)
    host.rank(105, 100, 0, 2)
    host.known[105] = replace(host.known[105], program="/home/user/other")
    host.start(106, 100, "")
    assert host.launch(101) == host.launch(102) == of(101, 102)


def test_processes_alone_are_jobs_of_their_own() -> None:
    host = Host()
    host.start(100, 1, "/usr/bin/mpirun")
    for pid in (101, 102):
        host.rank(pid, 100, 0, 1)
    assert host.launch(102) == of(102)
    assert len(host.below(100)) == 2


def test_a_table_that_was_read_while_pids_were_reused() -> None:
    known: Mapping[int, HostProcess] = {
        2: HostProcess(2, 3, PROGRAM, "", ()),
        3: HostProcess(3, 2, PROGRAM, "", ()),
    }
    assert list(ancestors(2, known)) == [3] and list(descendants(2, known)) == [3]


@pytest.mark.parametrize("value", ["0 10.0.0.1 4000 99 0", "", "0 \x1b[2J 1 1 1", "9" * 5000])
def test_environments_are_read_as_they_are(value: str) -> None:
    """What can't be shown is not believed."""
    with started({**os.environ, "NETSTART": value, "SLURM_STEP_ID": "3"}) as pid:
        found, seen = environment(pid), processes()[pid]
        assert pid in descendants(os.getpid(), processes())
    assert found["SLURM_STEP_ID"] == "3" and set(found) <= set(VARIABLES)
    assert len(seen.launch) <= 256 and seen.launch.isprintable()
    assert seen.launch == ("10.0.0.1 4000 99 0" if value.endswith("99 0") else "")


@pytest.mark.parametrize(
    ("first", "read"), [("7", "7"), ("", ""), ("\x1b[2J", None)], ids=["a value", "an empty one", "none to be shown"]
)
def test_of_a_name_that_is_there_twice_the_first_counts(first: str, read: Optional[str]) -> None:
    """As for getenv() in the process; Python's own dictionaries have a name once, as text, and once as bytes."""
    twice: dict[Any, str] = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": first, b"SLURM_STEP_ID": "9"}
    with started(twice) as pid:
        assert Path(f"/proc/{pid}/environ").read_bytes().count(b"SLURM_STEP_ID=") == 2
        assert environment(pid).get("SLURM_STEP_ID") == read
        assert environment(pid)["SLURM_JOB_ID"] == "1"


@contextmanager
def started(variables: dict[Any, str]) -> Iterator[int]:
    """The pid of a process that has been started with these variables alone."""
    program = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        yield child.pid
        child.communicate()
