"""All processes of a job at one moment, while its ranks exchange messages without pause."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inspector.job import read_stacks
from inspector.job.job import Job as InspectorJob
from inspector.job.read_processes import read_together
from inspector.job.reading import Way
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import JobMember, members_of
from pieglobalsfind.ranks import rankset
from tests.support.busy import SOURCE, why_impossible
from tests.support.busy_values import value_of
from tests.support.running import Job, StartJob, built

RANKS, PROCESSES = 12, 4
LOOKS = 50
FOR_EVER = 1 << 40
AHEAD = 2  # steps that a rank can be ahead of the one that it receives from


@pytest.fixture
def busy(start_job: StartJob, tmp_path: Path) -> Job:
    source, program = tmp_path / "busy.c", tmp_path / "busy"
    source.write_text(SOURCE)
    subprocess.run([str(built("rankcc")), "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, "--procs", PROCESSES, program, "exchange", FOR_EVER)
    job.wait_for("begins", times=RANKS)
    return job


def seen(job: InspectorJob, _: JobMember) -> tuple[dict[int, int], read_stacks.Stacks]:
    """How many steps each rank has made, and its stack."""
    steps = {rank.rank: value_of(job, rank, "before") for rank in job.present}
    return steps, read_stacks.read(job, rankset.parse("all"), with_runtime=False)


def test_no_process_is_ahead(busy: Job) -> None:
    """A rank needs its neighbour's message for every step: at one moment, none is far ahead."""
    for _ in range(LOOKS):
        steps: dict[int, int] = {}
        for _, found in read_together(members_of(str(busy.pid)), Way(), seen, with_data=True):
            assert not isinstance(found, RanklensError), found
            steps |= found[0]
            assert found[1].missing == {}
            for calls in found[1].calls.values():
                assert why_impossible([call.function for call in calls], "exchange") == ""
        assert sorted(steps) == list(range(RANKS))
        assert all(steps[rank] <= steps[(rank - 1) % RANKS] + AHEAD for rank in range(RANKS)), steps


def steps_of(found: list[dict[str, Any]]) -> dict[int, int]:
    """How many steps each rank has made, by the JSON of `globals`."""
    (before,) = (one for one in found if one["name"] == "before")
    return {int(rank): int(one["value"]) for one in before["groups"] for rank in members(one["ranks"])}


def members(ranks: str) -> list[int]:
    spans = [[int(end) for end in part.split("-")] for part in ranks.split(",")]
    return [rank for span in spans for rank in range(span[0], span[-1] + 1)]


def test_globals_of_one_moment(busy: Job) -> None:
    """In all processes: as above, by the command."""
    for _ in range(3):
        found = json.loads(inspected("globals", "--job", busy.pid).stdout)["globals"]
        steps = steps_of(found)
        assert sorted(steps) == list(range(RANKS))
        assert all(steps[rank] <= steps[(rank - 1) % RANKS] + AHEAD for rank in range(RANKS)), steps
        (number,) = (one for one in found if one["name"] == "number")
        assert number["groups"] == [{"ranks": str(rank), "value": str(rank)} for rank in range(RANKS)]
    some = json.loads(inspected("globals", "--job", busy.pid, "num*", "--rank", "2,5-6").stdout)["globals"]
    assert [(one["name"], [group["ranks"] for group in one["groups"]]) for one in some] == [("number", ["2", "5", "6"])]


def test_a_snapshot_of_one_moment(busy: Job, tmp_path: Path) -> None:
    """Its files, one for each process, are read together as the job was."""
    folder = tmp_path / "kept"
    command = [str(built("inspector")), "snapshot", "--job", str(busy.pid), "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert re.match(rf".*kept: {PROCESSES} processes, .* of memory.*, {RANKS} ranks\n", done.stdout)
    assert f"copied from {PROCESSES} processes while they stood still for" in done.stdout
    again = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr.partition("kept ")[2]) == (
        2,
        "is there already: name another folder by -o\n",
    )
    busy.close()
    steps = steps_of(json.loads(inspected("globals", folder).stdout)["globals"])
    assert sorted(steps) == list(range(RANKS))
    assert all(steps[rank] <= steps[(rank - 1) % RANKS] + AHEAD for rank in range(RANKS)), steps
    stacks = json.loads(inspected("stacks", folder).stdout)
    assert stacks["missing"] == [] and stacks["target"] == "snapshot kept"
    assert sorted(rank for one in stacks["stacks"] for rank in members(one["ranks"])) == list(range(RANKS))
    for one in stacks["stacks"]:
        assert why_impossible([call["function"] for call in one["calls"]], "exchange") == ""


def inspected(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(one) for one in (built("inspector"), *words, "--json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_how_it_was_read(busy: Job) -> None:
    paused = json.loads(inspected("stacks", "--job", busy.pid).stdout)
    assert re.match(
        rf"copied from {PROCESSES} processes while they stood still for [0-9.]+ ms( \([23] stops\))?, "
        r"the last one [0-9.]+ ms after the first: all figures are of one moment$",
        paused["how"],
    )
    assert paused["missing"] == []
    frozen = inspected("stacks", "--job", busy.pid, "--freeze")
    assert re.fullmatch(rf"inspector: {PROCESSES} processes of .* stood still for [0-9]+ ms\n", frozen.stderr)
    assert json.loads(frozen.stdout)["missing"] == []
    running = json.loads(inspected("stacks", "--job", busy.pid, "--nonblocking").stdout)
    assert "without stopping it" in running["how"]
