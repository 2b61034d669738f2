"""A brief pause: what is read is of one moment, whatever the job does, and the job does not notice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from inspector.job import read_stacks
from inspector.job.job import Job as InspectorJob
from inspector.job.job import job_of
from pieglobalsfind.errors import MemoryUnreadable, TargetEndedError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.one_moment import MOST_STOPS, at_one_moment, plan_for
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.ptrace import tracer_of
from tests.support.busy import SOURCE, WAYS, why_impossible
from tests.support.busy_values import value_of
from tests.support.running import Job, StartJob, built
from tests.support.waiting import wait_until

RANKS, ELEMENTS = 12, 2
LOOKS = 100
FOR_EVER = 1 << 40
KILLS = 100
SIGNALS = 2000

Value = TypeVar("Value")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("busy")
    source, path = folder / "busy.c", folder / "busy"
    source.write_text(SOURCE)
    subprocess.run([str(built("rankcc")), "-g", "-O1", str(source), "-o", str(path)], check=True, timeout=60)
    return path


def start(start_job: StartJob, program: Path, way: str, turns: int = FOR_EVER) -> Job:
    job = start_job(built("rankrun"), "-n", RANKS, "--pes", ELEMENTS, program, way, turns)
    job.wait_for("begins")
    return job


def looked_at(job: InspectorJob) -> tuple[InspectorJob, read_stacks.Stacks]:
    return job, read_stacks.read_one(job, rankset.parse("all"), with_runtime=False)


def paused(live: LiveTarget, read: Callable[[InspectorJob], Value], with_data: bool = False) -> Value:
    return at_one_moment([plan_for(live, with_data)], with_data, lambda targets: read(job_of(targets[0])))


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_at_every_look(start_job: StartJob, program: Path, way: str) -> None:
    """All stacks are possible in the program, and globals that change one after the other are never torn."""
    job = start(start_job, program, way)
    live = LiveTarget(job.pid)
    for _ in range(LOOKS):
        found, seen = paused(live, looked_at, with_data=True)
        assert [rank.rank for rank in found.table.ranks] == list(range(RANKS))
        assert sorted(seen.calls) == list(range(RANKS)) and seen.missing == {}
        for calls in seen.calls.values():
            assert why_impossible([call.function for call in calls], way) == ""
        for rank in found.table.ranks:
            assert value_of(found, rank, "before") - value_of(found, rank, "after") in (0, 1)
            assert value_of(found, rank, "number", size=4) == rank.rank


@pytest.mark.parametrize("way", WAYS)
def test_the_result_is_the_same(start_job: StartJob, program: Path, way: str) -> None:
    """As that of the same job at which nothing looks; a job that ended before the first look is made longer."""
    turns, looks = 1500, 0
    while looks == 0:
        alone = start(start_job, program, way, turns)
        job = start(start_job, program, way, turns)
        looks = looks_until_its_end(job)
        assert alone.finish(120) == 0 and job.finish(120) == 0
        assert result(job) == result(alone)
        turns *= 4


def looks_until_its_end(job: Job) -> int:
    """How many looks, of at most `LOOKS`, saw the job."""
    looks = 0
    with suppress(TargetEndedError):
        while looks < LOOKS:
            paused(LiveTarget(job.pid), looked_at)
            looks += 1
    return looks


def result(job: Job) -> str:
    (line,) = (line for line in job.lines if line.startswith("sum "))
    return line


def test_what_the_plan_lacks_is_copied_by_another_stop(start_job: StartJob, program: Path) -> None:
    job = start(start_job, program, "exchange")
    heap = next(mapping for mapping in LiveTarget(job.pid).maps() if mapping.path == "[heap]")

    def read(found: InspectorJob) -> tuple[bytes, int]:
        assert isinstance(found.target, PausedTarget)
        return found.target.read(heap.start + 16, 64), found.target.pause.stops

    data, stops = paused(LiveTarget(job.pid), read)
    assert len(data) == 64 and stops == 2


def test_no_more_stops_than_three(start_job: StartJob, program: Path) -> None:
    """Each look wants something else: in the end what is lacking is said."""
    job = start(start_job, program, "exchange")
    heap = next(mapping for mapping in LiveTarget(job.pid).maps() if mapping.path == "[heap]")
    places = iter(range(heap.start, heap.end, 4096))
    stops = []

    def read(found: InspectorJob) -> bytes:
        assert isinstance(found.target, PausedTarget)
        stops.append(found.target.pause.stops)
        return found.target.read(next(places), 8)

    with pytest.raises(MemoryUnreadable, match="was not copied while the process stood still"):
        paused(LiveTarget(job.pid), read)
    assert stops == list(range(1, MOST_STOPS + 1))


LOOKER = """
import sys
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.targets.live import LiveTarget
live = LiveTarget(int(sys.argv[1]))
plan = plan_for(live, True)
print("looks", flush=True)
while True:
    at_one_moment([plan], True, lambda targets: None)
"""


def test_a_killed_command_leaves_nothing_stopped(start_job: StartJob, program: Path) -> None:
    """At any moment: the kernel lets go of what a process traces when it ends."""
    job = start(start_job, program, "compute")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    kills = stopped = 0
    while kills < KILLS or stopped == 0:
        kills += 1
        looker = subprocess.Popen([str(built("python")), "-c", LOOKER, str(job.pid)], stdout=subprocess.PIPE)
        assert looker.stdout is not None and looker.stdout.readline() == b"looks\n"
        time.sleep(moments.uniform(0, 0.005))
        stopped += "t" in states(job.pid)
        looker.kill()
        looker.wait()
        looker.stdout.close()
        assert "t" not in states(job.pid) and tracer_of(job.pid) == 0
    before = steps(job)
    wait_until(lambda: steps(job) > before, "the job does not go on")


def steps(job: Job) -> int:
    """How many steps the ranks have made together."""
    live = LiveTarget(job.pid)
    return paused(
        live, lambda found: sum(value_of(found, rank, "before") for rank in found.table.ranks), with_data=True
    )


def states(pid: int) -> set[str]:
    """The kernel's letters for the states of the process's threads."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        found.add((task / "stat").read_text().rpartition(") ")[2].split()[0])
    return found


COUNTER = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int got;
static void count(int number) { (void)number; __atomic_fetch_add(&got, 1, __ATOMIC_SEQ_CST); }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN + 3, &action, NULL);
    puts("begins");
    fflush(stdout);
    for (int last = -1, now;; last = now) {
        now = got;
        if (now != last) {
            printf("got %d\n", now);
            fflush(stdout);
        }
    }
}
"""


def test_no_signal_is_lost(start_job: StartJob, tmp_path: Path) -> None:
    """Also one that a thread is about to get when it is stopped."""
    source, path = tmp_path / "counter.c", tmp_path / "counter"
    source.write_text(COUNTER)
    subprocess.run([str(built("rankcc")), "-g", "-O1", str(source), "-o", str(path)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 1, path)
    job.wait_for("begins")
    live = LiveTarget(job.pid)
    plan = plan_for(live, False)
    for turn in range(SIGNALS):
        os.kill(job.pid, signal.SIGRTMIN + 3)
        if turn % 10 == 0:
            at_one_moment([plan], False, lambda targets: None)
    job.wait_for(f"got {SIGNALS}")


def test_where_it_may_not_be_stopped(start_job: StartJob, program: Path) -> None:
    """Another process traces it: one sentence says so, and what is shown is what can be proven."""
    job = start(start_job, program, "compute")
    with FrozenTarget(job.pid):
        command = [str(built("inspector")), "globals", str(job.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.startswith(f"inspector: process {job.pid} is being traced by process {os.getpid()}: ")
    assert done.stderr.count("\n") == 1 and "read while it ran" in done.stderr
    assert "without stopping it" in done.stdout
