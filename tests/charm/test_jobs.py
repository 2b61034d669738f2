"""The processes of one launch, from any of its pids, its launcher's or its name, beside another of the same program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.jobs.members import members_of
from pieglobalsfind.jobs.processes import ancestors, environment, processes
from tests.support.charm.jobs import AMPICC, COPIES, LOCALLY, Launched, build, launched, running, wait_until_asleep
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.running import BIN, StartJob

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
BY_MPIEXEC = ("++mpiexec", "++remote-shell", "mpiexec.mpich")  # Open MPI's refuses root
# What stands for ssh leaves the processes to themselves: nothing above them is charmrun.
BY_SHELL = ("++nodelist", "nodes", "++remote-shell", "./shell")
RANKS = (6, 4)


@pytest.fixture(scope="module", params=COPIES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it is in."""
    folder = tmp_path_factory.mktemp("jobs")
    build(folder, request.param, "c")
    (folder / "nodes").write_text("group main\n host localhost\n host localhost\n")
    (folder / "shell").write_text("#!/bin/sh\nexec setsid -f /bin/bash -f\n")
    (folder / "shell").chmod(0o755)
    return folder


@pytest.fixture(params=[LOCALLY, BY_MPIEXEC, BY_SHELL], ids=["local", "mpiexec", "shell"])
def jobs(request: pytest.FixtureRequest, program: Path) -> Iterator[tuple[Launched, Launched]]:
    """Two at once of one program, by the same way of launching."""
    with ExitStack() as held:
        first, second = (held.enter_context(launched(program, ranks, how=request.param)) for ranks in RANKS)
        for _, found in (first, second):
            wait_until_asleep(next(pid for pid, ranks in found.items() if 0 in ranks))
        yield first, second


def name_of(pid: int) -> str:
    return environment(pid)["NETSTART"].partition(" ")[2]


def test_each_launch_is_found_by_whatever_is_known_of_it(jobs: tuple[Launched, Launched]) -> None:
    for launcher, found in jobs:
        expected = sorted(found, key=lambda pid: min(found[pid]))
        name = name_of(expected[0])
        for asked in (launcher.pid, *expected, name):
            members = members_of(str(asked))
            assert [job_member.pid for job_member in members.found] == expected, asked
            assert [job_member.index for job_member in members.found] == [0, 1] and members.problems == ()
            assert members.name == f"job {name}"
    with pytest.raises(UsageError, match=f"process {os.getpid()} has started 2 jobs"):
        members_of(str(os.getpid()))


@pytest.mark.parametrize("jobs", [LOCALLY], indirect=True, ids=["local"])
def test_reports_of_two_runs_are_not_merged(jobs: tuple[Launched, Launched], tmp_path: Path) -> None:
    """Without a hook too: a core file has the launcher's words that each process was started with."""
    reports = []
    for number, (_, found) in enumerate(jobs):
        first, second = sorted(found, key=lambda pid: min(found[pid]))
        for pid, target in ((first, str(first)), (second, str(make_core(second, tmp_path)))):
            said = subprocess.run([BIN / "inspector", "report", target, "--json"], capture_output=True, timeout=120)
            report = tmp_path / f"{number}.{pid}.json"
            report.write_bytes(said.stdout)
            reports.append(report)
            assert json.loads(said.stdout)["job"] == name_of(pid)
    paths, other = reports[:2], [reports[0], reports[3]]
    for files, status in ((paths, 0), (other, 2)):
        done = subprocess.run([BIN / "inspector", "merge", *files], capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stderr
    assert re.fullmatch(r"inspector: \S+ is of job .*, \S+ is of job .*: merge files of one job\n", done.stderr)


def test_core_files_of_two_runs_without_a_launcher_are_not_merged(program: Path, tmp_path: Path) -> None:
    reports = [tmp_path / name for name in ("first", "first.core", "second.core")]
    with running(program) as first, running(program) as second:
        targets = [first.pid, make_core(first.pid, tmp_path), make_core(second.pid, tmp_path)]
        for target, report in zip(targets, reports):
            with report.open("wb") as file:
                command = [str(BIN / "inspector"), "report", str(target), "--json"]
                subprocess.run(command, stdout=file, timeout=120, check=True)
    for files, status in ((reports[:2], 0), (reports[1:], 2)):
        words = [str(BIN / "inspector"), "merge", *map(str, files)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stderr
    assert re.fullmatch(r"inspector: \S+ is of job \w+, \S+ is of job \w+: merge files of one job\n", done.stderr)


@pytest.mark.parametrize("jobs", [BY_MPIEXEC], indirect=True, ids=["mpiexec"])
def test_launchers_between_and_the_whole_report(jobs: tuple[Launched, Launched]) -> None:
    (launcher, found), _ = jobs
    known = processes()
    between = [ancestor for ancestor in ancestors(min(found), known) if launcher.pid in ancestors(ancestor, known)]
    of_both = [one for one in between if all(one in ancestors(pid, known) for pid in found)]
    assert any(known[one].name.startswith("mpiexec") for one in of_both), [known[one] for one in between]
    for one in of_both:
        assert {member.pid for member in members_of(str(one)).found} == set(found)
    said = subprocess.run(
        [BIN / "inspector", "report", "--job", str(launcher.pid), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    report = json.loads(said.stdout)
    assert [one["rank"] for one in report["ranks"]] == list(range(RANKS[0])) and report["warnings"] == []
    (own,) = (one for one in report["globals"] if one["name"] == "g_rank")
    assert own["groups"] == [{"ranks": str(rank), "value": str(rank)} for rank in range(RANKS[0])]


def test_a_process_that_is_gone_is_said_to_be(program: Path) -> None:
    with launched(program, RANKS[0]) as (_, found):
        wait_until_asleep(next(pid for pid, ranks in found.items() if 0 in ranks))
        first, second = sorted(found, key=lambda pid: min(found[pid]))
        os.kill(second, signal.SIGSTOP)  # it is still there, and read
        assert members_of(str(first)).problems == ()
        os.kill(first, signal.SIGSTOP)
        os.kill(second, signal.SIGKILL)
        members = members_of(str(first))
        assert [job_member.pid for job_member in members.found] == [first]
        assert members.problems == ("of 2 processes of the job 1 can't be found: 1",)


def test_a_debugger_finds_the_processes_by_their_table(
    program: Path, start_job: StartJob, gdb: Path, tmp_path: Path
) -> None:
    """GDB reads `rankmpir`'s table as a parallel debugger does, attaches to what it names, and is in the ranks."""
    with launched(program, RANKS[0]) as (launcher, found):
        expected = sorted(found, key=lambda pid: min(found[pid]))
        wait_until_asleep(expected[0])
        publisher = start_job(BIN / "inspector", "mpir", launcher.pid)
        publisher.wait_for("a debugger that attaches")
        script = """
        pids = [value("MPIR_proctable[%d].pid" % i) for i in range(value("MPIR_proctable_size"))]
        tell("pids", pids)
        tell("state", value("MPIR_debug_state"))
        tell("programs", [gdb.parse_and_eval("MPIR_proctable[%d].executable_name" % i).string() for i in range(2)])
        ask("detach")
        for pid in pids:
            ask("attach %d" % pid)
            tell("values of %d" % pid, ask("rank print g_rank").split())
            ask("detach")
        """
        answers = Session(gdb, tmp_path).attach(script, publisher.pid)
        assert answers["pids"] == expected and answers["state"] == 1, "MPIR_DEBUG_SPAWNED"
        assert answers["programs"] == [str(program / "prog")] * 2
        for pid, ranks in found.items():
            assert answers[f"values of {pid}"] == [word for rank in sorted(ranks) for word in (f"{rank}:", str(rank))]
        assert publisher.process.poll() is None
    assert publisher.finish() == 0
