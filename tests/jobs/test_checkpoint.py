"""Checkpoints: a killed job that goes on from one, on another number of processes, ends as if nothing had been."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.job_programs import STEPS, Build, run
from tests.support.running import Job, StartJob
from tests.support.waiting import wait_until

from .test_tools import report


def whole(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[0-9]*") if (path / "job").exists())


def wait_for_next(folder: Path) -> Path:
    """A checkpoint that was begun after now."""
    wanted = (int(whole(folder)[-1].name) if whole(folder) else 0) + 2
    newer = wait_until(
        lambda: [path for path in whole(folder) if int(path.name) >= wanted], "there are no more checkpoints"
    )
    return newer[-1]


@pytest.fixture
def interrupted(start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path) -> Path:
    """The folder of a job of two processes that was killed in its second half."""
    folder = tmp_path / "kept"
    job: Job = start_job(
        rankrun, "-n", 4, "--procs", 2, "--checkpoint", folder, "--every", 0.1,
        build("steps.c"), STEPS, tmp_path / "go",
    )  # fmt: skip
    job.wait_for("half")
    wait_for_next(folder)
    os.killpg(job.pid, signal.SIGKILL)
    job.process.wait()
    (tmp_path / "go").touch()
    return folder


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_killed_job_goes_on(processes: int, interrupted: Path, stepped: list[str]) -> None:
    done = run("--restart", interrupted, "--procs", processes)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == stepped
    assert "half" not in done.stdout, "the first half was not run again"


def test_what_a_restart_will_lack_is_said_once(
    start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path
) -> None:
    folder, go = tmp_path / "kept", tmp_path / "go"
    job = start_job(rankrun, "-n", 4, "--procs", 2, "--checkpoint", folder, "--every", 0.1, build("descriptors.c"), go)
    wait_for_next(folder)
    go.touch()
    assert job.finish() == 0
    said = re.fullmatch(r"rankrun: rank 1 has descriptor \d+ \(/dev/null\) open, which will not be .*\n", job.stderr())
    assert said, job.stderr()


def test_an_older_one_can_be_named(interrupted: Path, stepped: list[str]) -> None:
    *_, older, newest = whole(interrupted)  # the one before may be about to be removed
    assert int(newest.name) == int(older.name) + 1
    done = run("--restart", older)
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == stepped


def test_pages_that_can_not_be_read_are_left_out(
    start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path
) -> None:
    """The list of mappings does not show the guard pages of glibc 2.42's stacks."""
    folder, go = tmp_path / "kept", tmp_path / "go"
    job = start_job(rankrun, "-n", 2, "--checkpoint", folder, "--every", 0.1, build("guards.c"), go)
    job.wait_for("half")
    if "no guards\n" in job.lines:
        pytest.skip("this kernel has no guard pages without a mapping of their own (Linux 6.13)")
    wait_for_next(folder)
    go.touch()
    assert job.finish() == 0, job.stderr()


def test_what_is_cut_short_is_never_taken_for_whole(interrupted: Path, tmp_path: Path) -> None:
    newest = whole(interrupted)[-1]
    core = newest / "process-1.core"
    content = core.read_bytes()
    for size in (0, 63, 64, 4096, len(content) // 2, len(content) - 1):
        core.write_bytes(content[:size])
        done = run("--restart", interrupted)
        assert done.returncode == 2 and "process-1.core is not whole" in done.stderr, (size, done)
    core.unlink()
    assert "process-1.core is not whole: No such file" in run("--restart", interrupted).stderr
    job = newest / "job"
    text = job.read_text()
    stack = re.sub(r"(?m)^stack-size \d+$", "stack-size 1", text)  # a stack that no rank could run on
    ranks = re.sub(r"(?m)^ranks \d+\n", "", text)
    for damaged in (text[: text.rindex("end")], stack, ranks):
        job.write_text(damaged)
        done = run("--restart", interrupted)
        assert done.returncode == 2 and "is not a checkpoint that this version can read" in done.stderr
    job.unlink()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / ".000001.77").mkdir()
    done = run("--restart", tmp_path / "begun")
    assert done.returncode == 2 and "has no whole checkpoint" in done.stderr


def test_another_program_is_refused(interrupted: Path, build: Build) -> None:
    build("steps.c", "-O2", "-DOTHER=1", "-Wl,--build-id=0x1234")
    done = run("--restart", interrupted)
    assert done.returncode == 2 and "has changed, or lies elsewhere, since checkpoint" in done.stderr


def test_a_folder_that_can_not_be_written_is_refused(build: Build, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("-n", 4, "--checkpoint", tmp_path / "file" / "kept", build("steps.c"), STEPS)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rankrun: checkpoints can't be written to {tmp_path / 'file' / 'kept'}: Not a directory\n"


def core_files() -> set[Path]:
    """Where a process would write a core file without a folder's name."""
    return {path for folder in ("/", ".") for path in Path(folder).glob("process-*.core")}


def test_a_folder_that_has_gone_stops_no_job(start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path) -> None:
    program, before, folder = build("steps.c"), core_files(), tmp_path / "place" / "kept"
    undisturbed = run("-n", 4, program, 20).stdout.splitlines()
    folder.parent.mkdir()
    job: Job = start_job(rankrun, "-n", 4, "--checkpoint", folder, "--every", 0.2, program, 20, tmp_path / "go")
    job.wait_for("half")
    folder.parent.rename(tmp_path / "gone")
    wait_until(lambda: "can't be written" in job.stderr(), "nothing is said of the folder")
    (tmp_path / "go").touch()
    assert job.finish() == 0
    assert sorted(job.lines) == sorted(undisturbed) and len(undisturbed) == 5
    assert "No such file or directory; the job continues" in job.stderr()
    assert core_files() == before


def test_a_far_checkpoint_delays_no_report_of_a_deadlock(build: Build, tmp_path: Path) -> None:
    options = ("--procs", 2, "--exit-on-deadlock", "--checkpoint", tmp_path / "kept", "--every", 10_000_000)
    assert run("-n", 4, *options, build("ends.c")).returncode == 3


def test_a_rank_that_had_exited_is_known_and_can_be_sent_to(
    start_job: StartJob, build: Build, rankrun: Path, tmp_path: Path
) -> None:
    """The oracle is the same job without a restart, or with two."""
    folder, go, program = tmp_path / "kept", tmp_path / "go", build("leaves.c")
    words = ("-n", 4, "--procs", 2, "--exit-on-deadlock")
    keep = ("--checkpoint", folder, "--every", 0.1)
    job = start_job(rankrun, *words, *keep, program, go)
    wait_for_next(folder)
    os.killpg(job.pid, signal.SIGKILL)
    again = start_job(rankrun, "--restart", folder, *words[2:], *keep)
    wait_for_next(folder)
    known = {one["rank"]: (one["state"], one["exit_status"]) for one in report("--job", again.pid)["ranks"]}
    assert known.pop(1) == ("exited", 0) and set(known) == {0, 2, 3}
    assert all(state != "exited" and status is None for state, status in known.values())
    os.killpg(again.pid, signal.SIGKILL)
    again.process.wait()
    go.touch()
    ended = run(*words, program, go)
    assert ended.stdout == "sent\n" and ended.stderr.splitlines()[2] == "  rank 1: has exited without MPI_Finalize"
    restarted = run("--restart", folder, *words[2:])
    assert (restarted.returncode, restarted.stdout) == (ended.returncode, ended.stdout)
    assert restarted.stderr == ended.stderr
