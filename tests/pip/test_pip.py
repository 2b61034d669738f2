"""Real tasks of Process-in-Process: found by a live process, a core file, and GDB, by what they say of themselves.

Process mode needs PiP's own glibc, and PIP_HOME to be built with it: `PIP_GLIBC` is the folder with its libraries and
start files. There tasks are executables, whose thread-local variables lie where PiP's program expects its own.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.pip.decode import STARTING
from pieglobalsfind.model import RUNNING, Region
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from tests.support.debuggers import find_lldb
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.lldb.session import Session as LldbSession
from tests.support.running import BIN, Job, StartJob
from tests.support.waiting import wait_until
from tests.tasks.truth import Truth, tables_of, told_by

HOME = Path(os.environ.get("PIP_HOME", ""))
GLIBC = os.environ.get("PIP_GLIBC", "")
MODES = {"thread": "thread", "process": "process:pipclone"}  # by what PIP_MODE says
NAMES = ("g_rank", "s_rank") if GLIBC else ("g_rank", "s_rank", "tls_rank")
HERE = Path(__file__).resolve().parent
TASKS = 3
MPICH = shutil.which("mpicc.mpich") or ""
ASKED = ("ranks", "waits")
WHOLE = [f"ENDED {rank} {rank} {rank} {rank}" for rank in range(TASKS)]

pytestmark = pytest.mark.skipif(not os.environ.get("PIP_HOME"), reason="PIP_HOME is not set")


@dataclass(frozen=True)
class Running:
    """The root, and what each task has said."""

    job: Job
    tasks: dict[int, Truth]
    mode: str

    @property
    def pid(self) -> int:
        return self.job.pid

    def check_that_all_live(self, folder: Path) -> None:
        """Let the tasks end; each says then that its variables are its own."""
        if self.mode == "thread":
            return  # of its own accord PiP's glibc ends then with SIGSEGV once a task returns
        (folder / "go").touch()
        assert self.job.finish() == 0, self.job.stderr()
        assert sorted(line for line in self.job.lines if line.startswith("ENDED")) == WHOLE


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with root and task; a task is a shared object, if it is stock glibc that loads it."""
    folder = tmp_path_factory.mktemp("pip")
    words = ["gcc", "-g", "-O0", "-fPIC", "-I", str(HOME / "include")]
    library = ["-L", str(HOME / "lib"), f"-Wl,--no-as-needed,-rpath,{HOME / 'lib'}", "-lpip", "-ldl", "-lpthread"]
    if GLIBC:
        loader = next(Path(GLIBC).glob("ld-linux*"))
        words += [f"-B{GLIBC}/", f"-L{GLIBC}", f"-Wl,--disable-new-dtags,-rpath,{GLIBC}"]
        words += [f"-Wl,--dynamic-linker={loader}", "-rdynamic"]
    task = [str(HERE / "main.c"), str(HERE.parent / "tasks" / "task.c")]
    for name, kind, sources in (
        ("root", "-pie", [str(HERE / "root.c")]),
        ("task", "-pie" if GLIBC else "-shared", task),
    ):
        subprocess.run([*words, kind, *sources, "-o", str(folder / name), *library], check=True, timeout=60)
    return folder


@pytest.fixture(params=["thread", pytest.param("process", marks=pytest.mark.skipif(not GLIBC, reason="no PIP_GLIBC"))])
def running(request: pytest.FixtureRequest, start_job: StartJob, programs: Path) -> Running:
    environment = {**os.environ, "PIP_MODE": MODES[request.param]}
    job = start_job(programs / "root", TASKS, programs / "task", environment=environment)
    return Running(job, told_by(job, TASKS), request.param)


def check(target: Target, running: Running) -> None:
    table = decode(target)
    assert (table.runtime, table.method, table.warnings) == ("PiP", f"pip{running.mode}", ())
    assert [rank.rank for rank in table.ranks] == sorted(running.tasks)
    for rank in table.ranks:
        assert (rank.state, rank.kernel_thread) == (RUNNING, running.tasks[rank.rank].thread)
        # Of a thread that is in no system call just now, a live process does not tell the stack pointer.
        if isinstance(rank.stack, Region):
            assert running.tasks[rank.rank].stack in rank.stack
        else:  # a core file of one process has no registers of another's
            assert target.is_live or running.mode == "process"


def test_tasks_of_a_running_process_and_of_its_core(running: Running, tmp_path: Path) -> None:
    check(open_target(pid=running.pid), running)
    check(open_target(core=str(make_core(running.pid, tmp_path))), running)


def test_a_job_that_starts_is_said_to_start(programs: Path, tmp_path: Path) -> None:
    """At each of its system calls there are no tasks yet, or those that there are."""
    tables = tables_of(
        [programs / "root", TASKS, programs / "task"], tmp_path, TASKS, {**os.environ, "PIP_MODE": "thread"}
    )
    told = [
        one for one, _ in itertools.groupby(([rank.rank for rank in table.ranks], table.warnings) for table in tables)
    ]
    assert told == [([], (STARTING,)), ([2], ()), ([1, 2], ()), ([0, 1, 2], ())]


def test_addresses_are_the_tasks_own(running: Running) -> None:
    for number, truth in running.tasks.items():
        words = [hex(truth.variable), hex(truth.thread_local)]
        said = subprocess.run(
            [BIN / "pieglobalsfind", "--pid", str(running.pid), *words], capture_output=True, text=True, timeout=60
        ).stdout.splitlines()
        assert f"rank {number}  data" in said[0] and "g_rank+0x0" in said[0]
        if "tls_rank" in NAMES:
            assert f"rank {number}  tls" in said[1] and "tls_rank+0x0" in said[1]


def test_the_report_has_each_task_s_globals(running: Running) -> None:
    done = subprocess.run(
        [BIN / "inspector", "report", str(running.pid), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    report = json.loads(done.stdout)
    own = {one["name"]: one["groups"] for one in report["globals"] if one["name"] in NAMES}
    expected = [{"ranks": str(rank), "value": str(rank)} for rank in range(TASKS)]
    assert own == dict.fromkeys(NAMES, expected)
    assert report["pointers"]["alarms"] == [], "the first copy is the original, and no lapse"


def test_gdb_shows_each_task_s_own(running: Running, gdb: Path, tmp_path: Path) -> None:
    """The values of all; threads and stacks where tasks are threads of the process."""
    script = f"""
    for name in {NAMES}:
        tell(name, ask("rank print " + name).split())
    for rank in range(3):
        ask("rank %d" % rank)
        tell("thread of %d" % rank, gdb.selected_thread().ptid[1])
        tell("stack of %d" % rank, functions())
    """
    answers = Session(gdb, tmp_path).attach(script, running.pid)
    for name in NAMES:
        assert answers[name] == [word for rank in range(TASKS) for word in (f"{rank}:", str(rank))]
    for rank, truth in running.tasks.items():
        if running.mode == "thread":
            assert answers[f"thread of {rank}"] == truth.thread
            assert {"tick", "task_main", "main"} <= set(answers[f"stack of {rank}"])
    running.check_that_all_live(tmp_path)


def test_gdb_stops_in_every_task(running: Running, gdb: Path, tmp_path: Path) -> None:
    """In process mode in none from the first process, whose breakpoints would kill them: that is refused."""
    script = f"""
    tell("break", ask("break tick"))
    tell("enabled", [one.enabled for one in gdb.breakpoints() if one.visible])
    met = []
    while any(one.enabled for one in gdb.breakpoints() if one.visible) and len(set(met)) < 3 and len(met) < 50:
        ask("continue")
        met.append(value("$_rank"))
        assert [value(name) for name in {NAMES}] == [met[-1]] * {len(NAMES)}
    tell("met", sorted(set(met)))
    ask("delete")
    """
    answers = Session(gdb, tmp_path).attach(script, running.pid)
    if running.mode == "process":
        refused = re.search(r"is disabled, it would kill rank (\d): these run in processes \((\d+)\)", answers["break"])
        assert refused and running.tasks[int(refused[1])].thread == int(refused[2]), answers["break"]
        assert answers["enabled"] == [False] and answers["met"] == []
    else:
        assert answers["met"] == list(range(TASKS)), answers["break"]
    running.check_that_all_live(tmp_path)


def test_gdb_in_one_task_s_process_stops_that_one_alone(running: Running, gdb: Path, tmp_path: Path) -> None:
    if running.mode == "thread":
        pytest.skip("tasks are threads: there is no such process")
    script = f"""
    tell("selected", value("$_rank"))
    tell("values", [value(name) for name in {NAMES}])
    ask("tbreak tick")
    tell("stop", ask("continue"))
    tell("stack", functions())
    tell("rank", value("$_rank"))
    """
    answers = Session(gdb, tmp_path).attach(script, running.tasks[1].thread)
    assert answers["selected"] == 1 and answers["values"] == [1] * len(NAMES)
    assert answers["rank"] == 1 and answers["stack"][:2] == ["tick", "task_main"], answers["stop"]
    running.check_that_all_live(tmp_path)


def test_lldb_shows_each_task_s_own(running: Running, tmp_path: Path) -> None:
    if running.mode == "process":
        pytest.skip("LLDB in the first process has no threads of others")
    script = f"""
    for name in {NAMES}:
        tell(name, ask("rank print " + name).split())
    for rank in range(3):
        ask("rank %d" % rank)
        tell("values of %d" % rank, [value(name) for name in ("g_rank", "s_rank")])
        tell("stack of %d" % rank, functions(target.GetProcess().GetSelectedThread()))
    """
    answers = LldbSession(find_lldb(), tmp_path).attach(script, running.pid)
    for name in NAMES:
        assert answers[name] == [word for rank in range(TASKS) for word in (f"{rank}:", str(rank))]
    for rank in range(TASKS):
        assert answers[f"values of {rank}"] == [rank] * 2
        assert {"tick", "task_main", "main"} <= set(answers[f"stack of {rank}"])


def test_lldb_in_one_task_s_process_stops_that_one_alone(running: Running, tmp_path: Path) -> None:
    """In the first process it puts a breakpoint nowhere: it knows no file of other namespaces there."""
    if running.mode == "thread":
        pytest.skip("tasks are threads: there is no such process")
    script = """
    tell("values", ask("rank print g_rank"))
    ask("breakpoint set --one-shot true --name tick")
    ask("continue")
    tell("stack", functions(target.GetProcess().GetSelectedThread()))
    tell("stopped", [value(name) for name in ("g_rank", "s_rank")])
    """
    answers = LldbSession(find_lldb(), tmp_path).attach(script, running.tasks[1].thread)
    assert "1: 1\n" in answers["values"] and "0: <rank 0's stack can't be unwound" in answers["values"], answers[
        "values"
    ]
    assert answers["stack"][:2] == ["tick", "task_main"] and answers["stopped"] == [1, 1]
    first = LldbSession(find_lldb(), tmp_path).attach(
        """
    ask("breakpoint set --name tick")
    tell("places", [one.GetNumLocations() for one in target.breakpoint_iter() if not one.IsInternal()][-1])
    """,
        running.pid,
    )
    assert first["places"] == 0
    running.check_that_all_live(tmp_path)


@pytest.mark.skipif(not MPICH or bool(GLIBC), reason="MPICH is not installed, or is built for another glibc than tasks")
def test_what_a_task_waits_for_in_an_mpi_library(programs: Path, start_job: StartJob, tmp_path: Path) -> None:
    """By the arguments of its call, in a core file; ranks of each task's own MPI_COMM_WORLD are no numbers of tasks."""
    task = tmp_path / "receive"
    words = [MPICH, "-g", "-O2", "-fPIC", "-shared", "-I", HOME / "include", HERE / "receive.c", "-o", task]
    words += ["-L", HOME / "lib", f"-Wl,--no-as-needed,-rpath,{HOME / 'lib'}", "-lpip"]
    subprocess.run([str(word) for word in words], check=True, timeout=60)
    job = start_job(programs / "root", TASKS, task, environment={**os.environ, "PIP_MODE": MODES["thread"]})
    job.wait_for("RECEIVES", times=TASKS)
    cores = itertools.count()

    def waits() -> list[Any]:
        folder = tmp_path / str(next(cores))
        folder.mkdir()
        core = make_core(job.pid, folder)
        told = [subprocess.run([BIN / "inspector", what, core, "--json"], capture_output=True) for what in ASKED]
        core.unlink()
        whole, found = (json.loads(one.stdout or '{"ranks": []}') for one in told)
        ranks = whole["ranks"]
        return [ranks, found] if all(rank["waiting"] for rank in ranks) else []

    ranks, found = wait_until(waits, "the tasks never came to wait")
    assert [rank["state"] for rank in ranks] == ["running"] * TASKS  # as kernel threads
    assert [(rank["waiting"]["call"], rank["waiting"]["peer"], rank["waiting"]["tag"]) for rank in ranks] == [
        ("MPI_Recv", 0, 40),
        ("MPI_Recv", -1, 41),
        ("MPI_Recv", 0, 42),
    ]
    assert (found["waits"], found["cycles"], found["any"], found["untold"]) == ([], [], "1", "0,2")
