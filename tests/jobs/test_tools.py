"""The inspector on whole jobs: every rank once, wherever it is, and what is amiss said while the rest is still told."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inspector.analysis.report_schema import SCHEMA
from tests.support.job_programs import Build
from tests.support.running import BIN, Job, StartJob
from tests.support.waiting import wait_until

from .test_processes import children

RANKS = 6


def inspector(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def report(*words: object) -> dict[str, Any]:
    done = inspector("report", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    """Six ranks in three processes; all wait, after each of two has moved one process on."""
    found = start_job(rankrun, "-n", RANKS, "--procs", 3, build("placed.c"))
    found.wait_for("waits", times=RANKS)
    return found


def check_ranks(found: dict[str, Any]) -> None:
    assert [one["rank"] for one in found["ranks"]] == list(range(RANKS))
    assert [one["process"] for one in found["ranks"]] == [0, 1, 1, 2, 2, 0]
    assert [one["moves"] for one in found["ranks"]] == [0, 1, 0, 1, 0, 1]
    assert [one["rank"] for one in found["payload"]] == list(range(RANKS))
    (own,) = (one for one in found["globals"] if one["name"] == "my_rank")
    assert own["groups"] == [{"ranks": str(rank), "value": str(rank)} for rank in range(RANKS)]
    (same,) = (one for one in found["globals"] if one["name"] == "all_the_same")
    assert same["groups"] == [{"ranks": "0-5", "value": "77"}] and same["verdict"] == "equal everywhere"


def test_a_job_by_its_launcher_its_processes_and_its_id(job: Job) -> None:
    first = report("--job", job.pid)
    check_ranks(first)
    assert first["warnings"] == [] and first["target"].startswith("job ")
    for name in (*children(job.pid), first["target"].partition(" ")[2]):
        assert report("--job", name)["globals"] == first["globals"]


def test_a_launcher_has_no_ranks_itself(job: Job, pieglobalsfind: Path) -> None:
    """It says where they are."""
    processes = ", ".join(str(child) for child in children(job.pid))
    sentence = (
        f"process {job.pid} has no ranks itself, it has started {report('--job', job.pid)['target']} with processes "
        f"{processes}: give the pid of one, or to `inspector report`, `stacks`, `waits` or `globals` the whole job "
        f"by --job {job.pid}\n"
    )
    for words in (["report"], ["stacks"], ["ranks"], ["report", "--freeze"]):
        done = inspector(*words, job.pid)
        assert (done.returncode, done.stdout, done.stderr.rpartition("inspector: ")[2]) == (2, "", sentence)
    words = [str(pieglobalsfind), "--pid", str(job.pid), "0x10"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (2, f"pieglobalsfind: {sentence}")


def test_the_first_process_of_all_is_no_launcher(job: Job) -> None:
    """Whatever happens to run, it is above it."""
    done = inspector("report", "--job", 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("inspector: process 1 is the parent of every process here, not a job's launcher: ")


def has_ranks(launcher: int) -> bool:
    """In both of its processes."""
    found = children(launcher)
    return len(found) == 2 and all(inspector("ranks", pid).returncode == 0 for pid in found)


def test_a_rank_that_moves_all_the_time_is_there_once(start_job: StartJob, build: Build, rankrun: Path) -> None:
    """Whatever moment each process was read at; where rank 1 was found nowhere, the report says so."""
    job = start_job(rankrun, "-n", 2, "--procs", 2, "--migrate", "lean", build("returns.c"), 1 << 30, 64)

    wait_until(lambda: has_ranks(job.pid), "the job's ranks were not made")
    before = -1
    for _ in range(3):
        found = report("--job", job.pid)
        assert [one["rank"] for one in found["ranks"]] == [0, 1]
        assert [one["process"] for one in found["ranks"]] in ([0, 0], [0, 1])
        before, last = found["ranks"][1]["moves"], before
        assert before > last
        was_found = [one["rank"] for one in found["payload"]] == [0, 1]
        lost = "rank 1 was moving while the job was read: its data was not found"
        assert found["warnings"] == ([] if was_found else [lost])


def test_globals_and_a_snapshot_of_a_job(job: Job, tmp_path: Path) -> None:
    """They are what the report of the job has, also when the job is gone."""
    whole = report("--job", job.pid)
    done = inspector("globals", "--job", job.pid, "--json")
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["globals"] == whole["globals"]
    done = inspector("globals", "--job", job.pid, "--rank", 9)
    assert (done.returncode, done.stderr) == (2, "inspector: there is no rank 9: these processes have 0-5\n")
    folder = tmp_path / "kept"
    assert inspector("snapshot", "--job", job.pid, "-o", folder).returncode == 0
    job.close()
    kept = report(folder)
    check_ranks(kept)
    assert kept["target"] == "snapshot kept" and kept["warnings"] == []
    assert kept["globals"] == whole["globals"] and kept["payload"] == whole["payload"]
    (folder / "process-1.snapshot").unlink()
    lacking = report(folder)["warnings"]
    assert "of 3 processes of the job 1 can't be found: 1" in lacking


def test_two_jobs_of_one_program_are_two(job: Job, start_job: StartJob, build: Build, rankrun: Path) -> None:
    other = start_job(rankrun, "-n", 2, "--procs", 2, build("placed.c"))
    other.wait_for("waits", times=2)
    check_ranks(report("--job", job.pid))
    assert [one["rank"] for one in report("--job", other.pid)["ranks"]] == [0, 1]
    done = inspector("report", "--job", os.getpid())
    assert done.returncode == 2 and f"process {os.getpid()} has started 2 jobs" in done.stderr


def test_stacks_of_a_job(job: Job) -> None:
    done = inspector("stacks", "--job", job.pid, "--json")
    found = json.loads(done.stdout)
    assert [one["ranks"] for one in found["stacks"]] == ["0-5"] and found["rank_count"] == RANKS
    assert [call["function"] for call in found["stacks"][0]["calls"]] == ["main", "wait", "MPI_Recv"]


@pytest.mark.parametrize("chosen", ["0,2", "0-2", "5", "1,3-4", "blocked"])
def test_stacks_of_some_ranks_of_a_job(job: Job, chosen: str) -> None:
    """They are in several processes: none is asked for a rank that another one has."""
    done = inspector("stacks", "--job", job.pid, "--rank", chosen, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [one["ranks"] for one in found["stacks"]] == ["0-5" if chosen == "blocked" else chosen]
    assert found["missing"] == []


def test_stacks_of_a_rank_that_the_job_does_not_have(job: Job) -> None:
    done = inspector("stacks", "--job", job.pid, "--rank", "2,99")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "inspector: there is no rank 99: these processes have 0-5\n"


def test_a_deadlock_between_two_processes(start_job: StartJob, build: Build, rankrun: Path) -> None:
    """Neither process has both ranks, so that none of them alone can tell."""
    job = start_job(rankrun, "-n", 10, "--procs", 2, build("cross.c"))
    job.wait_until_still()
    done = inspector("waits", "--job", job.pid, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["cycles"] == [[1, 9]] and found["target"].startswith("job ")
    (barrier,) = found["collectives"]
    assert (barrier["call"], barrier["inside"], barrier["lacking"]) == ("MPI_Barrier", "0,2-8", "1,9")
    assert "deadlock: ranks 1,9 wait for one another, 1 -> 9 -> 1" in inspector("waits", "--job", job.pid).stdout
    for pid in children(job.pid):
        assert json.loads(inspector("waits", pid, "--json").stdout)["cycles"] == []
    assert inspector("waits").returncode == inspector("waits", job.pid, "--job", job.pid).returncode == 2


def test_waits_of_a_checkpoint(checkpoint: Path) -> None:
    """Every rank of its processes waits for itself, but for the one that looked for the checkpoint."""
    done = inspector("waits", checkpoint, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["target"].startswith("checkpoint ") and [[rank] for rank in range(1, RANKS)] == found["cycles"][-5:]


def test_a_report_as_html(job: Job, tmp_path: Path) -> None:
    done = inspector("report", "--job", job.pid, "--html", tmp_path / "job.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "job.html").read_text()
    assert "6 of 6 ranks" in text and "all_the_same" in text


def test_a_process_that_stands_still_is_read_all_the_same(job: Job) -> None:
    os.kill(children(job.pid)[1], signal.SIGSTOP)
    check_ranks(report("--job", job.pid))


@pytest.fixture
def checkpoint(start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path) -> Path:
    """A folder with a checkpoint of the job, which has ended."""
    folder = tmp_path / "kept"
    found = start_job(
        rankrun, "-n", RANKS, "--procs", 3, "--checkpoint", folder, "--every", 0.2, build("placed.c"), folder
    )
    found.wait_for("waits", times=RANKS)
    found.wait_for("kept")
    os.killpg(found.pid, signal.SIGKILL)
    found.process.wait()
    return folder


def test_a_checkpoint_is_a_target(checkpoint: Path) -> None:
    found = report(checkpoint)
    check_ranks(found)
    assert found["target"].startswith("checkpoint ") and found["warnings"] == []
    stacks = inspector("stacks", checkpoint)
    assert "wait at placed.c" in stacks.stdout and "[0-5]" in stacks.stdout
    some = inspector("stacks", checkpoint, "--rank", "0,2")
    assert (some.returncode, some.stderr) == (0, "") and "2 of 6 ranks" in some.stdout and "[0,2]" in some.stdout


def test_addresses_of_a_checkpoint(checkpoint: Path, pieglobalsfind: Path) -> None:
    """The same address as any process that has the rank would tell it."""
    core = sorted(checkpoint.glob("0*"))[-1] / "process-1.core"
    ranks = json.loads(inspector("ranks", core, "--json").stdout)["ranks"]
    assert {rank["rank"] for rank in ranks if rank["state"] != "migrated-out"} == {1, 2}
    address = hex(0x200000000000 + (1 << 30) + 0x2000)
    one = [str(pieglobalsfind), "--checkpoint", str(checkpoint), address]
    done = subprocess.run(one, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "rank 1  stack" in done.stdout, done


def test_what_is_about_one_process_takes_no_checkpoint(checkpoint: Path) -> None:
    done = inspector("ranks", checkpoint)
    assert done.returncode == 2 and done.stderr.startswith(f"inspector: {checkpoint} is a folder: `report`, `stacks`")


def test_half_a_checkpoint_says_what_is_lacking(checkpoint: Path) -> None:
    newest = sorted(checkpoint.glob("0*"))[-1]
    (newest / "process-1.core").unlink()
    found = report(newest)
    # Process 0 had rank 1 once, and knows where it went; nobody else ever had rank 2.
    assert [one["rank"] for one in found["ranks"]] == [0, 1, 3, 4, 5]
    assert "no process shows rank 2" in found["warnings"]
    assert any("1 can't be found: 1" in one for one in found["warnings"]), found["warnings"]
    cut = newest / "process-2.core"
    cut.write_bytes(cut.read_bytes()[:100])
    found = report(newest)
    assert any("process-2.core" in one for one in found["warnings"]), found["warnings"]
    shutil.rmtree(newest)
    for path in checkpoint.glob("0*"):
        shutil.rmtree(path)
    done = inspector("report", checkpoint)
    assert done.returncode == 2 and "holds no whole checkpoint" in done.stderr


def test_no_such_job() -> None:
    done = inspector("report", "--job", "nobody")
    assert done.returncode == 2 and "no process of job nobody can be found here" in done.stderr
    assert inspector("report").returncode == 2
    assert inspector("report", "1", "--job", "1").returncode == 2


def test_ranks_that_have_exited_are_listed_with_their_status(
    start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = start_job(rankrun, "-n", 4, "--procs", 2, "--pes", 2, build("leaves.c"), go, "statuses")
    job.wait_for("finalized")

    def statuses() -> dict[int, Any]:
        return {one["rank"]: one["exit_status"] for one in report("--job", job.pid)["ranks"]}

    wait_until(lambda: statuses() == {0: None, 1: 10, 2: 20, 3: 30}, lambda: f"the ranks' statuses are {statuses()}")
    assert "exited (10)" in inspector("ranks", children(job.pid)[0]).stdout
    go.touch()
    assert job.finish() == 30
