"""`inspector record` on ranks that stand still or loop where their source says, until the job ends or Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from inspector.recording.pace import MOST_LOST, Pace, idle_seconds
from tests.inspector.commands.test_stacks import EVEN, ODD, SPINS
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job, hear_interrupts

BEGINS = "inspector: recording process "


@pytest.fixture
def held(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "waits.c", loops=True)


def recording(job: Job, *words: object) -> subprocess.Popen[str]:
    """The command, once it has taken a sample."""
    command = [str(BIN / "inspector"), "record", str(job.pid), *map(str, words)]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    )
    assert started.stderr is not None and started.stderr.readline().startswith(BEGINS)
    return started


def stacks_of(path: Path) -> dict[str, set[tuple[str, ...]]]:
    """By rank, the stacks of a file in speedscope's form."""
    whole = json.loads(path.read_text())
    names = [one["name"] for one in whole["shared"]["frames"]]
    return {
        profile["name"]: {tuple(names[frame] for frame in stack) for stack in profile["samples"]}
        for profile in whole["profiles"]
    }


def test_until_ctrl_c(held: Job, tmp_path: Path) -> None:
    path = tmp_path / "job.speedscope.json"
    command = recording(held, "-o", path, "--json")
    command.send_signal(signal.SIGINT)
    said, problems = command.communicate(timeout=120)
    assert command.returncode == 0 and problems == f"inspector: {path} is written\n"
    found = json.loads(said)
    assert found["schema"] == "ranklens-record-1" and found["samples"] > 0
    by_rank = {one["rank"]: one for one in found["ranks"]}
    assert [sorted(by_rank[rank]["calls"]) for rank in range(4)] == [["MPI_Recv"], ["MPI_Recv"], ["MPI_Recv"], []]
    for rank in range(3):
        assert by_rank[rank]["calls"]["MPI_Recv"] == found["seconds"] and by_rank[rank]["outside_mpi"] == 0
    assert by_rank[3]["outside_mpi"] == found["seconds"]
    stacks = stacks_of(path)
    assert stacks["rank 0"] == stacks["rank 2"] == {tuple(EVEN)} and stacks["rank 1"] == {tuple(ODD)}
    assert all(one[:2] == tuple(SPINS) for one in stacks["rank 3"])
    assert set().union(*(stacks[f"rank {rank}"] for rank in range(4))) == stacks["all 4 ranks, added up"]


def test_until_the_job_ends(held: Job, tmp_path: Path) -> None:
    path = tmp_path / "job.folded"
    command = recording(held, "-o", path, "--rank", "0-1")
    held.close()
    said, problems = command.communicate(timeout=120)
    assert command.returncode == 0, problems
    lines = said.splitlines()
    assert lines[0].endswith(": 2 ranks") and " samples in " in lines[1]
    assert all(line.startswith(("rank 0;main", "rank 1;main")) for line in path.read_text().splitlines())


def test_sigterm_writes_what_there_is(held: Job, tmp_path: Path) -> None:
    path = tmp_path / "job.perfetto.json"
    command = recording(held, "-o", path)
    command.send_signal(signal.SIGTERM)
    command.communicate(timeout=120)
    assert command.returncode == 128 + signal.SIGTERM
    assert {one["name"] for one in json.loads(path.read_text())["traceEvents"]} >= {"process_name", "ranks in"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["1", "-o", "x.txt"], "does not say which form the file is to have"),
        (["core"], "'core' is not a process"),
        (["1", "--rate", "0"], "--rate takes 1 to 1000 samples a second"),
        (["1", "--rank", "blocked"], "--rank takes numbers here"),
        (["1", "--format", "folded"], "--format is the form of a file"),
    ],
)
def test_bad_calls(words: list[str], sentence: str) -> None:
    done = subprocess.run([str(BIN / "inspector"), "record", *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and sentence in done.stderr


def test_a_rank_that_is_not_there(held: Job) -> None:
    command = [str(BIN / "inspector"), "record", str(held.pid), "--rank", "9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "inspector: there is no rank 9: this process has 0-3\n")


def test_looks_that_stop_a_job_for_long_are_few() -> None:
    """The next one comes when all stops together are the share of the time that is allowed."""
    pace = Pace(os.getpid(), 0.01)
    seconds = pace.wait(pace.began, 3.0, 0.0)
    assert 3.0 / MOST_LOST - 60 < seconds <= 3.0 / MOST_LOST
    assert pace.slowed == 1


def test_idle_time_is_that_of_the_processors_that_are_meant(tmp_path: Path) -> None:
    table = tmp_path / "stat"
    table.write_text("cpu  9 9 9 900 90 0\ncpu0 1 1 1 100 20 0\ncpu1 1 1 1 300 10 0\ncpu10 1 1 1 7 0 0\nintr 5\n")
    ticks = os.sysconf("SC_CLK_TCK")
    assert idle_seconds(frozenset({0, 10}), str(table)) == 127 / ticks
    assert idle_seconds(frozenset({0}), str(tmp_path / "none")) == 0.0
