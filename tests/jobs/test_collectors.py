"""`inspector report --mpi` under real MPICH: each collector sees one process of the job alone, as on a node of its own.

The other processes are hidden from a collector by a mount over their folders in /proc, which only root may make.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Optional

import pytest

from inspector.collect.host_reading import sources_of
from inspector.job.flight_recorder import is_running
from pieglobalsfind.jobs.members import Members, members_of
from pieglobalsfind.jobs.processes import descendants, processes
from tests.support.job_programs import Build
from tests.support.running import BIN, Job, StartJob
from tests.support.sites import setting
from tests.support.waiting import wait_until

from .opened_files import watched
from .test_processes import children
from .test_tools import RANKS, check_ranks

HOST = socket.gethostname()
NODE = """#!/bin/sh
place=0
for pid in $PIDS; do
    [ $place = $PMI_RANK ] || mount -t tmpfs none /proc/$pid
    case $HANGS in *$PMI_RANK*) [ $place = $PMI_RANK ] || mkfifo /proc/$pid/maps ;; esac # who reads it waits for ever
    place=$((place + 1))
done
[ "$PMI_RANK" != "$DIES" ] || { read -r _ <"$ORDER"; kill -9 $$; }
[ -z "$DEBUG" ] || mount --bind "$DEBUG.$PMI_RANK" "$DEBUG" # a disk of its own
export XDG_CACHE_HOME="$XDG_CACHE_HOME/$PMI_RANK"
exec "$@"
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="hiding processes from each other takes root")


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    found = start_job(rankrun, "-n", RANKS, "--procs", 3, build("placed.c"))
    found.wait_for("waits", times=RANKS)
    return found


def collect(
    job: Job,
    folder: Path,
    count: int,
    *words: object,
    hangs: str = "",
    dies: str = "",
    debug: str = "",
    sees_all: bool = False,
    first_is_empty: bool = False,
    meanwhile: Optional[Callable[[int], None]] = None,
) -> subprocess.CompletedProcess[str]:
    """What the collectors print together; each has a cache of its own, as on nodes with disks of their own.

    `hangs`: places whose reading never ends. `dies`: the place of one that is killed before it has begun, once a line
    is in the pipe `order`. `debug`: a file in place of which each collector has another one. `sees_all`: no process is
    hidden from it. `first_is_empty`: the first sees no process of the job but its launcher. `meanwhile` is called with
    the pid of the collectors' own.
    """
    node = folder / "node.sh"
    node.write_text(NODE)
    node.chmod(0o755)
    job_id = members_of(str(job.pid)).name.partition(" ")[2]
    environment = {
        **os.environ,
        "PIDS": "" if sees_all else " ".join(map(str, [job.pid] * first_is_empty + children(job.pid))),
        "HANGS": hangs,
        "DIES": dies,
        "ORDER": str(folder / "order"),
        "DEBUG": debug,
        "LD_LIBRARY_PATH": str(libraries(folder)),
    }
    report = [BIN / "inspector", "report", "--mpi", "--job", job_id, *words]
    command = [str(one) for one in ("mpiexec.mpich", "-n", count, "unshare", "--mount", node, *report)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        if meanwhile is not None:
            meanwhile(process.pid)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    finally:
        if process.poll() is None:
            for pid in (process.pid, *descendants(process.pid, processes())):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def mpich() -> str:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.rpartition(" ")[2] for line in listed.splitlines() if "libmpich.so.12 " in line)


def libraries(folder: Path) -> Path:
    """MPICH's library as mpi4py and Debian name it."""
    path = folder / "libraries"
    if not path.exists():
        path.mkdir()
        (path / "libmpi.so.12").symlink_to("libmpich.so.12")
        (path / "libmpich.so.12").symlink_to(mpich())
    return path


def report_in(text: str) -> dict[str, Any]:
    """Among what the launcher says."""
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("\n}\n") + 2])
    return found


def refused(*words: object, **environment: str) -> str:
    """What a collector says that can't start."""
    command = [*map(str, words), str(BIN / "inspector"), "stacks", "--mpi", "--job", "none"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_without_mpi4py_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mpi4py'] = None\n")
    said = refused(PYTHONPATH=str(tmp_path))
    assert said == "inspector: --mpi needs mpi4py: pip install 'ranklens[mpi]', or Debian's python3-mpi4py\n"


def test_without_the_launchers_mpi_it_says_what_to_install(tmp_path: Path) -> None:
    """The library is there in name alone."""
    words = ("unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', mpich())
    said = refused(*words, XDG_CACHE_HOME=str(tmp_path), PMI_RANK="0")
    assert said.startswith("inspector: --mpi needs the launcher's MPI library, libmpi.so.12 or libmpich.so.12, which ")
    assert "install the launcher's own MPI (Debian: libmpich12)" in said


@pytest.mark.parametrize("count", [3, 4])
def test_one_report_of_all_nodes(count: int, job: Job, tmp_path: Path) -> None:
    """A node without any process of the job changes nothing."""
    done = collect(job, tmp_path, count, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check_ranks(found)
    assert found["warnings"] == []


def test_a_collector_alone_says_what_it_lacks(job: Job, tmp_path: Path) -> None:
    found = json.loads(collect(job, tmp_path, 1, "--json").stdout)
    assert "of 3 processes of the job 2 can't be found: 1, 2" in found["warnings"]
    # Process 0 has 0 and 5, and knows where 1 went.
    assert "no process shows ranks 2-4" in found["warnings"]
    assert [one["rank"] for one in found["payload"]] == [0, 5]


def test_a_collector_that_hangs_is_named(job: Job, tmp_path: Path) -> None:
    done = collect(job, tmp_path, 3, "--json", "--timeout", "12s", hangs="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    reason = "what reads there has not ended in 12 s"
    assert f"collector 1 of 3 on host {HOST} does not answer: {reason}" in found["warnings"]
    assert "of 3 processes of the job 1 can't be found: 1" in found["warnings"]
    assert [one["rank"] for one in found["payload"]] == [0, 3, 4, 5]


def processes_of(launcher: int, place: int) -> list[int]:
    """Of a collector: what the launcher has started, the collector itself, what speaks, and what reads."""
    known = processes()
    own = [descendant for descendant in descendants(launcher, known) if is_of(descendant, place)]
    above = {one: known[one].parent for one in own}
    first = [one for one in own if above[one] not in own]
    second = [one for one in own if above[one] in first]
    return [*first, *second, *sorted(one for one in own if above[one] in second)]


def is_of(pid: int, place: int) -> bool:
    try:
        return setting(pid, "PMI_RANK") == str(place) and Path(f"/proc/{pid}/cmdline").read_text().count("--mpi") == 1
    except (OSError, StopIteration):
        return False


def all_of(launcher: int, place: int, count: int = 4) -> list[int]:
    """Once it has so many: with three it speaks, with four it reads as well."""

    def found() -> list[int]:
        own = processes_of(launcher, place)
        return own if len(own) >= count else []

    return wait_until(found, f"collector {place} has not started {count} processes")


@pytest.mark.parametrize(
    ("place", "elsewhere", "unknown", "told"),
    [(0, 5, 0, [1, 2, 3, 4]), (1, 1, 2, [0, 3, 4, 5])],
)
def test_a_collector_whose_reader_dies_is_named(
    place: int, elsewhere: int, unknown: int, told: list[int], job: Job, tmp_path: Path
) -> None:
    """The first one, which reports, like any other."""

    def kill(launcher: int) -> None:
        os.kill(all_of(launcher, place)[3], signal.SIGKILL)

    done = collect(job, tmp_path, 3, "--json", hangs=str(place), meanwhile=kill)
    assert (done.returncode, done.stderr) == (0, ""), done
    found = json.loads(done.stdout)
    assert found["warnings"] == [
        f"of 3 processes of the job 1 can't be found: {place}",
        f"collector {place} of 3 on host {HOST} does not answer: what reads there was ended by signal 9 (Killed)",
        f"rank {elsewhere} is in process {place}, which can't be read",
        f"no process shows rank {unknown}",
    ]
    assert [one["rank"] for one in found["payload"]] == told


def test_a_host_that_is_lost_is_named_though_the_launcher_kills_the_others(job: Job, tmp_path: Path) -> None:
    """All of a collector at once, in the midst of the tree: collector 3 tells through it alone."""

    def kill(launcher: int) -> None:
        for pid in all_of(launcher, 2):
            os.kill(pid, signal.SIGKILL)

    done = collect(job, tmp_path, 4, "--json", "--timeout", "9s", hangs="2", meanwhile=kill)
    assert "BAD TERMINATION" in done.stdout + done.stderr, "the launcher has killed what it had started"
    found = report_in(done.stdout)
    host = f"({HOST}|unknown)"  # their names may have been on the way
    lost = rf"collector 2 of 4 on host {host} does not answer; neither do those below it: 3 \(hosts: {host}\)"
    (silent,) = (one for one in found["warnings"] if re.fullmatch(lost, one))
    assert set(found["warnings"]) == {
        "of 3 processes of the job 1 can't be found: 2",
        silent,
        "rank 3 is in process 2, which can't be read",
        "no process shows rank 4",
    }
    assert [one["rank"] for one in found["payload"]] == [0, 1, 2, 5]


def test_a_collector_that_dies_before_mpi_has_begun(job: Job, tmp_path: Path) -> None:
    """MPI_Init never returns for the others then, and the launcher kills them."""
    os.mkfifo(tmp_path / "order")

    def kill(launcher: int) -> None:
        for place in (0, 2):
            all_of(launcher, place, 3)
        (tmp_path / "order").write_text("now\n")

    done = collect(job, tmp_path, 3, "--json", "--timeout", "7s", dies="1", meanwhile=kill)
    assert "BAD TERMINATION" in done.stdout + done.stderr
    found = report_in(done.stdout)
    assert found["warnings"] == [
        "of 3 processes of the job 2 can't be found: 1, 2",
        "collectors on other hosts do not answer: MPI_Init has not answered in time (--timeout)",
        "rank 1 is in process 1, which can't be read",
        "no process shows ranks 2-4",
    ]
    assert [one["rank"] for one in found["payload"]] == [0, 5]
    sentence = "inspector: collectors on other hosts do not answer: MPI_Init has not answered in time (--timeout): "
    assert done.stderr.count(sentence) == 1, "of the collector that reports nothing"


def test_who_interrupts_the_launcher_ends_all_collectors(job: Job, tmp_path: Path) -> None:
    own: list[int] = []

    def interrupt(launcher: int) -> None:
        own.extend((*all_of(launcher, 0, 3), *all_of(launcher, 1)))
        os.kill(launcher, signal.SIGINT)

    done = collect(job, tmp_path, 2, hangs="1", meanwhile=interrupt)
    assert "{" not in done.stdout
    wait_until(lambda: not any(is_running(pid) for pid in own), "collectors are left")


@pytest.fixture
def debug(build: Build) -> Path:
    """The debug information of the job's program, in a file of its own; and four copies of it."""
    program = build("placed.c")
    path = program.with_name("placed.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, path], check=True, timeout=60)
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={path}", program], check=True, timeout=60)
    for place in range(4):
        shutil.copy(path, f"{path}.{place}")
    return path


def test_debug_information_is_parsed_by_one_collector(
    start_job: StartJob, rankrun: Path, debug: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the kernel tells of files that are opened. Alone every collector parses, so what is seen can differ."""
    job = start_job(rankrun, "-n", RANKS, "--procs", 3, debug.with_name("placed-rankcc"))
    job.wait_for("waits", times=RANKS)
    copies = [Path(f"{debug}.{place}") for place in range(4)]

    def opened(
        count: int, cache: str, sees_all: bool = False, is_behind: bool = False
    ) -> tuple[list[int], dict[str, Any]]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        with watched(copies) as files:
            seen = partial(collect, debug=str(debug), sees_all=sees_all, first_is_empty=is_behind)
            done = seen(job, tmp_path, count, "--json")
            assert done.returncode == 0, done.stderr
            return [files.counts()[copy] for copy in copies], json.loads(done.stdout)

    alone, _ = opened(1, "alone")
    once = alone[0]
    assert once > 0 and alone[1:] == [0, 0, 0]
    of_three, found = opened(1, "of three", sees_all=True)
    check_ranks(found)
    assert of_three == alone, "three processes on a node take no more than one"
    together, found = opened(3, "together")
    check_ranks(found)
    assert sorted(together) == [0, 0, 0, once], "one collector has opened debug information, no more than alone"
    behind, found = opened(4, "behind", is_behind=True)
    check_ranks(found)
    assert found["warnings"] == []
    assert sorted(behind) == [0, 0, 0, once] and not behind[0], "one of those after a node without a process"
    again, _ = opened(4, "behind", is_behind=True)
    assert sum(again) <= once, "nor more for the next report"


def let_go(pipes: list[Path]) -> None:
    """Who waits for a writer, now or a little later, reads that there is nothing."""
    writers = [os.open(pipe, os.O_RDWR) for pipe in pipes]
    for pipe, writer in zip(pipes, writers):
        pipe.unlink()
        os.close(writer)


def test_who_is_asked_to_parse_and_cannot_keeps_nobody_waiting(
    start_job: StartJob, rankrun: Path, debug: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one parses by itself then; it is held up before it knows what it needs, so that it is not asked."""
    job = start_job(rankrun, "-n", RANKS, "--procs", 3, debug.with_name("placed-rankcc"))
    job.wait_for("waits", times=RANKS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own, other = Path(f"{debug}.0"), Path(f"{debug}.1")
    other.write_bytes(b"")

    with watched([own, other]) as files:

        def let_first_go(launcher: int) -> None:
            held = all_of(launcher, 0)[3]
            wait_until(lambda: files.counts()[other], "collector 1 is not asked")
            assert not files.counts()[own]
            hidden = Path(f"/proc/{held}/root/proc").glob("[0-9]*/maps")
            let_go([one for one in hidden if one.is_fifo()])

        words = ("--json", "--timeout", "600s")
        done = collect(job, tmp_path, 2, *words, debug=str(debug), hangs="0", meanwhile=let_first_go)
        assert done.returncode == 0, done.stderr
        assert files.counts()[own]
    values = [one["groups"] for one in json.loads(done.stdout)["globals"] if one["name"] == "my_rank" and one["file"]]
    assert values == [[{"ranks": str(rank), "value": str(rank)} for rank in (0, 5)]]


TALK = """
import time
from ranklens_inspector.collect.mpi_channel import ChannelMessage, speak
from ranklens_inspector.collect.worker_process import Worker
MANY, LARGE = 8, 1 << 20
speaker = Worker(speak)
until = time.monotonic() + 60
begun = speaker.receive(until)
other = 1 - begun.place
for number in range(MANY):
    speaker.send(ChannelMessage(other, 1, bytes([number]) * LARGE), until)
for number in range(MANY):
    assert speaker.receive(until) == ChannelMessage(other, 1, bytes([number]) * LARGE)
speaker.send(None, until)
speaker.receive(until)
speaker.close(until)
print("heard all")
"""


def test_two_collectors_that_both_speak_hear_each_other(tmp_path: Path) -> None:
    """More than fits between a collector and what speaks for it: neither listens before it has said all."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries(tmp_path))}
    command = ["mpiexec.mpich", "-n", "2", str(BIN / "python"), "-c", TALK]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=90
    )
    heard = done.stdout.replace("\n", "")  # mpiexec may mix the two processes' lines
    assert (done.returncode, heard) == (0, "heard all" * 2), done.stderr


def build_id_of(program: Path) -> bytes:
    """As binutils reads it."""
    told = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True, timeout=60).stdout
    match = re.search(r"Build ID: ([0-9a-f]+)", told)
    assert match is not None, told
    return bytes.fromhex(match.group(1))


def test_processes_of_one_node_may_run_several_programs(start_job: StartJob, build: Build, rankrun: Path) -> None:
    programs = [build("placed.c"), build("placed.c", "-O1")]
    jobs = [start_job(rankrun, "-n", 2, "--procs", 2, program) for program in programs]
    for one in jobs:
        one.wait_for("waits", times=2)
    job_members = [member for one in jobs for member in members_of(str(one.pid)).found]
    needed = sources_of(Members("both", tuple(job_members), len(job_members)))
    assert len(job_members) == 4 and {build_id_of(program) for program in programs} <= needed.keys()
