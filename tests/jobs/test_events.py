"""`inspector events` on real jobs: what it tells is what the runtime logs and what the program prints.

The oracle of migrations is `rankrun --migration-log`, written by another part of the runtime than the ring of events.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_programs import Build
from tests.support.running import BIN, Job, StartJob
from tests.support.waiting import wait_until

from .test_processes import children

RANKS, PROCESSES = 4, 2
Row = dict[str, Any]


@pytest.fixture
def wandering(start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path) -> Job:
    """A job that begins once the file `go` is there; it has made its ranks when this returns."""
    words = ("--procs", PROCESSES, "--migration-log", tmp_path / "moves", build("wander.c"), tmp_path / "go")
    job = start_job(rankrun, "-n", RANKS, *words)
    wait_until(lambda: has_made_its_ranks(job), "the job's ranks were not made")
    return job


def has_made_its_ranks(job: Job) -> bool:
    assert job.process.poll() is None, job.stderr()
    return past(job.pid).count("created") == RANKS


def past(target: object) -> str:
    """What has happened so far; "" while there is nothing to tell of."""
    command = [str(BIN / "inspector"), "events", "--no-follow", str(target)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def follow(start_job: StartJob, *words: object) -> Job:
    """`inspector events`, once it has told everything that had happened before it came."""
    job = start_job(BIN / "inspector", "events", *words)
    job.wait_for("created", times=RANKS)
    return job


def rows_of(text: list[str]) -> tuple[Row, list[Row]]:
    first, *rest = map(json.loads, text)
    return first, rest


def check_order(rows: list[Row]) -> None:
    """By time; each process's numbers are without a gap; no rank is anywhere before it left where it was."""
    events = [row for row in rows if "number" in row]
    assert [event["monotonic"] for event in events] == sorted(event["monotonic"] for event in events)
    for process in range(PROCESSES):
        own = [event["number"] for event in events if event["process"] == process]
        assert own == list(range(1, len(own) + 1))
    for rank in range(RANKS):
        own_events = [event for event in events if event["rank"] == rank]
        kinds = [event["event"] for event in own_events]
        assert kinds == ["created", *["leaves", "arrived"] * (len(kinds) // 2 - 1), "exited"]
        for before, after in zip(own_events, own_events[1:]):
            if before["event"] == "leaves":
                assert (before["other_process"], before["moves"]) == (after["process"], after["moves"])
                assert after["other_process"] == before["process"]
            else:
                assert before["process"] == after["process"]


def moves_of(rows: list[Row]) -> set[tuple[int, ...]]:
    return {
        (row["rank"], row["process"], row["other_process"], row["moves"]) for row in rows if row["event"] == "leaves"
    }


def logged(log: Path) -> set[tuple[int, ...]]:
    rows = map(json.loads, log.read_text().splitlines())
    return {(row["rank"], row["from"], row["to"], row["moves"]) for row in rows}


def test_a_job_is_followed_to_its_end(wandering: Job, start_job: StartJob, tmp_path: Path) -> None:
    events = follow(start_job, wandering.pid, "--json", "--chrome", tmp_path / "trace.json")
    (tmp_path / "go").touch()
    assert wandering.finish() == 0, wandering.stderr()
    assert events.finish() == 0 and events.stderr() == ""
    first, rows = rows_of(events.lines)
    assert first["schema"] == "ranklens-events-1" and first["process_count"] == PROCESSES
    check_order(rows)
    assert moves_of(rows) == logged(tmp_path / "moves") and len(moves_of(rows)) >= RANKS * 6
    assert sorted(row["process"] for row in rows if row["event"] == "ended") == [0, 1]
    trace = json.loads((tmp_path / "trace.json").read_text())
    check_trace(trace, rows, {one["process"]: one["pid"] for one in first["processes"]})


def check_trace(trace: Row, rows: list[Row], pids: dict[int, int]) -> None:
    """By the rules of the Trace Event Format's document, and against the events."""
    assert trace["displayTimeUnit"] in ("ms", "ns") and trace["otherData"]["left_out"] == 0
    by_phase: dict[str, list[Row]] = defaultdict(list)
    for one in trace["traceEvents"]:
        assert isinstance(one["name"], str) and isinstance(one["pid"], int) and isinstance(one["tid"], int)
        assert one["ph"] == "M" or (isinstance(one["ts"], float) and one["ts"] > 0 and isinstance(one["cat"], str))
        by_phase[one["ph"]].append(one)
    assert set(by_phase) <= set("MXsfi")
    names = {one["args"]["name"] for one in by_phase["M"] if one["name"].endswith("_name")}
    assert names == {*(f"process {pid}" for pid in pids), *(f"rank {one}" for one in range(RANKS))}
    tracks: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for one in by_phase["X"]:
        assert one["dur"] >= 0
        tracks[one["pid"], one["tid"]].append(one)
    for slices in tracks.values():  # on one track slices nest or follow one another; ours follow
        slices.sort(key=lambda one: (float(one["ts"]), float(one["dur"])))
        for before, after in zip(slices, slices[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.002
    stays = [one for one in by_phase["X"] if one["cat"] == "stay"]
    assert not any("began_before" in one["args"] or "goes_on" in one["args"] for one in by_phase["X"])
    assert len(stays) == RANKS + len(moves_of(rows))
    flows: dict[int, list[Row]] = defaultdict(list)
    for one in (*by_phase["s"], *by_phase["f"]):
        flows[one["id"]].append(one)
    assert len(flows) == len(moves_of(rows))
    found = set()
    for start, end in flows.values():
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e") and start["ts"] < end["ts"]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        (moving,) = (one for one in tracks[start["pid"], start["tid"]] if one["ts"] == start["ts"])
        (stay,) = (one for one in tracks[end["pid"], end["tid"]] if one["ts"] == end["ts"])
        assert (moving["cat"], stay["cat"]) == ("migration", "stay")
        found.add((start["tid"], start["pid"], end["pid"], moving["args"]["moves"]))
    assert found == {(rank, pids[before], pids[after], moves) for rank, before, after, moves in moves_of(rows)}


def test_it_is_told_as_it_happens_and_ends_by_ctrl_c(
    start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path
) -> None:
    """Ranks 1 and 3 have moved on, and all wait for ever: lines of that come though nothing ends."""
    job = start_job(rankrun, "-n", RANKS, "--procs", PROCESSES, build("placed.c"))
    job.wait_for("waits", times=RANKS)
    events = start_job(BIN / "inspector", "events", children(job.pid)[1], "--chrome", tmp_path / "trace.json")
    events.wait_for("arrived", times=2)
    assert any("rank 1  arrived from process 0, move 1, processing element 0" in line for line in events.lines)
    events.process.send_signal(signal.SIGINT)
    assert events.finish() == 0 and events.stderr() == ""
    trace = json.loads((tmp_path / "trace.json").read_text())
    goes_on = [one["tid"] for one in trace["traceEvents"] if one.get("args", {}).get("goes_on")]
    assert sorted(goes_on) == list(range(RANKS))
    assert (
        sum(one["ph"] == "s" for one in trace["traceEvents"])
        == 2
        == sum(one["ph"] == "f" for one in trace["traceEvents"])
    )
    again = start_job(BIN / "inspector", "events", job.pid, "--chrome", tmp_path / "other.json")
    again.wait_for("arrived", times=2)
    again.process.terminate()
    assert again.finish() == 128 + signal.SIGTERM and json.loads((tmp_path / "other.json").read_text())
    assert job.process.poll() is None


def tracers(pid: int) -> Iterator[str]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield next(line for line in (task / "status").read_text().splitlines() if line.startswith("TracerPid"))


def test_it_neither_attaches_nor_hinders_a_debugger(
    wandering: Job, start_job: StartJob, gdb: Path, tmp_path: Path
) -> None:
    events = follow(start_job, wandering.pid)
    assert all(set(tracers(pid)) == {"TracerPid:\t0"} for pid in children(wandering.pid))
    command = [gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", children(wandering.pid)[0]]
    stop = ["-ex", "break rank_debug_event if $rdi == 5", "-ex", f"shell touch {tmp_path / 'go'}", "-ex", "continue"]
    done = subprocess.run(
        [*map(str, command), *stop, "-ex", "print $rdi", "-ex", "delete", "-ex", "detach"],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert "$1 = 5" in done.stdout, done.stdout + done.stderr
    assert wandering.finish() == 0, wandering.stderr()
    assert events.finish() == 0
    assert sum("arrived" in line for line in events.lines) == len(logged(tmp_path / "moves"))


def test_for_a_time_only_and_of_what_is_past(wandering: Job, start_job: StartJob) -> None:
    first, rows = rows_of(json_past(wandering.pid))
    assert [row["event"] for row in rows if row["rank"] >= 0] == ["created"] * RANKS and "job" in first["target"]
    events = start_job(BIN / "inspector", "events", wandering.pid, "--duration", "10ms")
    assert events.finish() == 0 and sum("created" in line for line in events.lines) == RANKS


def json_past(target: object) -> list[str]:
    command = [str(BIN / "inspector"), "events", "--no-follow", "--json", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_killed_process_is_told_of_with_its_last_events(wandering: Job, start_job: StartJob) -> None:
    events = follow(start_job, wandering.pid)
    pids = children(wandering.pid)
    os.kill(pids[1], signal.SIGKILL)
    events.wait_for(f"process 1 (pid {pids[1]}) has ended")
    assert events.finish() == 0 and f"process 0 (pid {pids[0]}) has ended" in events.lines


def test_a_program_that_closes_every_file_is_followed_all_the_same(
    start_job: StartJob, rankrun: Path, tmp_path: Path
) -> None:
    source, program = tmp_path / "closes.c", tmp_path / "closes"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv) {\n  MPI_Init(&argc, &argv);\n"
        "  for (int file = 3; file < 1024; file++)\n    close(file);\n"
        '  printf("closed\\n");\n  fflush(stdout);\n  pause();\n  return 0;\n}\n'
    )
    subprocess.run([str(BIN / "rankcc"), str(source), "-o", str(program)], check=True, timeout=120)
    job = start_job(rankrun, "-n", 1, program)
    job.wait_for("closed")
    events = start_job(BIN / "inspector", "events", job.pid)
    events.wait_for("rank 0  created")
    assert "has closed its registry's file: what it does last before it ends may be missed" in events.stderr()
    job.process.kill()
    assert events.finish() == 0


def test_a_core_file_remembers(wandering: Job, gdb: Path, tmp_path: Path) -> None:
    pid = children(wandering.pid)[1]
    core = tmp_path / "core"
    save = [str(gdb), "-nx", "-batch", "-p", str(pid), "-ex", f"generate-core-file {core}"]
    subprocess.run(save, check=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    first, rows = rows_of(json_past(core))
    assert first["target"] == "core file core" and [one["pid"] for one in first["processes"]] == [None]
    assert [(row["rank"], row["event"]) for row in rows if row["rank"] >= 0] == [(2, "created"), (3, "created")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "no process of job nobody can be found here"),
        (("1", "--every", "soon"), "--every takes a time of 10ms to 10000min, and not 'soon'"),
        (("1", "--duration", "0"), "--duration takes a time of 10ms to 10000min, and not '0'"),
    ],
)
def test_bad_calls(words: tuple[str, ...], says: str) -> None:
    done = subprocess.run([str(BIN / "inspector"), "events", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_trace_that_can_not_be_written(wandering: Job, tmp_path: Path) -> None:
    command = [BIN / "inspector", "events", "--no-follow", wandering.pid, "--chrome", tmp_path / "no" / "trace.json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "can't be written" in done.stderr and "Traceback" not in done.stderr
