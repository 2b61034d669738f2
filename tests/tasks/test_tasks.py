"""Tasks as Process-in-Process makes them, real threads and real processes: found, shown, and never killed.

`stand_in.c` takes PiP's place, which no CI has; tests/pip asks the same of PiP itself, in thread mode.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.pip.decode import STARTING
from pieglobalsfind.decoders.pip.threads import NO_STACK
from pieglobalsfind.model import RUNNING, Region
from pieglobalsfind.targets import open_target
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.running import BIN, ROOT, Job, StartJob
from tests.support.waiting import wait_until
from tests.tasks.truth import Truth, tables_of, told_by

HERE = Path(__file__).resolve().parent
EMBEDDED = ROOT / "runtime-hooks" / "embedded"
HEADERS = ROOT / "runtime-hooks" / "include"
TASK = EMBEDDED / "ranks" / "memory_sharing_process.c"
TASKS = 3


@dataclass(frozen=True)
class Running:
    """The first process, and what each task has said."""

    job: Job
    tasks: dict[int, Truth]

    def finish(self, folder: Path) -> list[str]:
        """Let the tasks end; what they say then."""
        (folder / "go").touch()
        assert self.job.finish() == 0, self.job.stderr()
        return sorted(line for line in self.job.lines if line.startswith("ENDED"))


WHOLE = [f"ENDED {rank} {rank} {rank} {rank}" for rank in range(TASKS)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    library = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-l:libpip.so.0", "-lpthread", "-ldl"]
    shared = ["-shared", "-fPIC", "-g"]
    for words in (
        [*shared, "-Wl,-soname,libpip.so.0", HERE / "libpip.c", "-o", folder / "libpip.so.0"],
        [*shared, HERE / "task.c", "-o", folder / "task.so", "-Wl,--no-as-needed", *library],
        ["-g", f"-I{EMBEDDED}", f"-I{HEADERS}", HERE / "stand_in.c", TASK, "-o", folder / "stand_in", *library],
    ):
        subprocess.run(["gcc", *map(str, words)], check=True, timeout=60)
    return folder


@pytest.fixture(params=["thread", "process"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def running(start_job: StartJob, programs: Path, mode: str) -> Running:
    job = start_job(programs / "stand_in", mode, TASKS, programs / "task.so")
    return Running(job, told_by(job, TASKS))


def stacks_of(pid: int) -> list[Region]:
    """Where the tasks' stacks are, in the order of their numbers; none unless all are in a system call just now."""
    regions = [rank.stack for rank in decode(open_target(pid=pid)).ranks if isinstance(rank.stack, Region)]
    return regions if len(regions) == TASKS else []


def test_tasks_are_ranks_whoever_is_asked(running: Running, mode: str, tmp_path: Path) -> None:
    """Every process knows all; a task that is a thread is none."""
    threads = [task.thread for task in running.tasks.values()]
    for pid in (running.job.pid, *(threads if mode == "process" else ())):
        table = decode(open_target(pid=pid))
        assert (table.method, table.warnings) == (f"pip{mode}", ())
        assert [rank.rank for rank in table.ranks] == list(range(TASKS))
        for rank in table.ranks:
            truth = running.tasks[rank.rank]
            assert (rank.state, rank.kernel_thread) == (RUNNING, truth.thread)
            assert rank.address_space == (truth.thread if mode == "process" else 0)
        stacks = wait_until(partial(stacks_of, pid), f"process {pid} never told all stacks")
        assert all(one.stack in stack for one, stack in zip(running.tasks.values(), stacks))
        told = subprocess.run(
            [BIN / "pieglobalsfind", "--pid", str(pid), *(hex(task.variable) for task in running.tasks.values())],
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()
        assert len(told) == TASKS
        for number, line in zip(running.tasks, told):
            assert f"rank {number}  data" in line and "g_rank+0x0" in line
    assert running.finish(tmp_path) == WHOLE


def test_a_job_that_starts_is_said_to_start(programs: Path, tmp_path: Path) -> None:
    """At each of its system calls, while libraries are mapped, too, there are no tasks yet, or those that there are."""
    tables = tables_of([programs / "stand_in", "thread", TASKS, programs / "task.so"], tmp_path, TASKS)
    told = [
        one for one, _ in itertools.groupby(([rank.rank for rank in table.ranks], table.warnings) for table in tables)
    ]
    assert told == [([], (STARTING,)), ([2], ()), ([1, 2], ()), ([0, 1, 2], ())]


def test_a_core_file_has_all_tasks(running: Running, mode: str, tmp_path: Path) -> None:
    """Stacks too, of those whose registers it has: a core of one process tells no other's."""
    pid = running.job.pid if mode == "thread" else running.tasks[1].thread
    table = decode(open_target(core=str(make_core(pid, tmp_path))))
    assert (table.method, table.warnings) == (f"pip{mode}", ())
    assert [rank.kernel_thread for rank in table.ranks] == [running.tasks[one].thread for one in range(TASKS)]
    for rank in table.ranks:
        if mode == "thread" or rank.rank == 1:
            assert isinstance(rank.stack, Region) and running.tasks[rank.rank].stack in rank.stack
        else:
            assert rank.stack == NO_STACK


def globals_of(target: object) -> list[tuple[str, str, str]]:
    """(rank, value, verdict) of `g_rank`."""
    command = [str(BIN / "inspector"), "globals", str(target), "g_rank", "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    return [(group["ranks"], group["value"], one["verdict"]) for one in told["globals"] for group in one["groups"]]


def test_every_process_has_all_tasks_variables(running: Running, tmp_path: Path) -> None:
    """Tasks that are processes have their memory in common: core files and snapshots of any have it all."""
    kept = tmp_path / "kept"
    subprocess.run([BIN / "inspector", "snapshot", str(running.job.pid), "-o", kept], check=True, timeout=120)
    own = [(str(rank), str(rank), "differs") for rank in range(TASKS)]
    for target in (running.job.pid, kept, make_core(running.job.pid, tmp_path)):
        assert globals_of(target) == own
    assert running.finish(tmp_path) == WHOLE


def test_stacks_of_all_tasks(running: Running, tmp_path: Path) -> None:
    """Of running threads without their registers as far as they go; those of tasks' processes stand still, too."""
    command = [str(BIN / "inspector"), "stacks", str(running.job.pid)]
    done = subprocess.run([*command, "--freeze"], capture_output=True, text=True, timeout=120)
    place = r"task_main at task\.c:(21|22|21,22)  \[0-2\]"  # each asks for a file, and sleeps until it is there
    assert re.search(place, done.stdout) and "not whole" not in done.stdout, done.stdout + done.stderr
    said = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    assert "its thread is unknown" not in said
    assert running.finish(tmp_path) == WHOLE


@pytest.mark.parametrize("mode", ["process"], indirect=True)
def test_what_gdb_says_of_tasks_that_it_is_not_attached_to(running: Running, gdb: Path, tmp_path: Path) -> None:
    script = """
    tell("select", ask("rank 1"))
    tell("watch", ask("rank watch g_rank 1"))
    tell("tree", ask("rank tree"))
    """
    answers = Session(gdb, tmp_path).attach(script, running.job.pid)
    process = running.tasks[1].thread
    assert f"rank 1 runs in process {process}, whose registers are not known here: attach" in answers["select"]
    assert f"rank 1 runs in process {process}, which GDB is not attached to" in answers["watch"]
    assert f"its registers are those of process {process}" in answers["tree"]
    assert running.finish(tmp_path) == WHOLE


@pytest.mark.parametrize("mode", ["process"], indirect=True)
def test_a_breakpoint_that_would_kill_tasks_is_refused(running: Running, gdb: Path, tmp_path: Path) -> None:
    """GDB in the first process alone: who would run into it is named, with the process, and all live."""
    script = """
    tell("break", ask("break tick"))
    tell("shared", ask("break enter"))
    tell("enabled", [one.enabled for one in gdb.breakpoints() if one.visible])
    tell("values", ask("rank print g_rank").split())
    """
    answers = Session(gdb, tmp_path).attach(script, running.job.pid)
    refused = re.search(r"is disabled, it would kill rank (\d): these run in processes \((\d+)\)", answers["break"])
    assert refused and running.tasks[int(refused[1])].thread == int(refused[2]), answers["break"]
    shared = re.search(r"is disabled, it would kill rank 0-2: these run in processes \((.*?)\)", answers["shared"])
    assert shared and shared[1] == ", ".join(str(running.tasks[one].thread) for one in range(TASKS)), answers["shared"]
    assert answers["enabled"] and not any(answers["enabled"])
    assert answers["values"] == [word for rank in range(TASKS) for word in (f"{rank}:", str(rank))]
    assert running.finish(tmp_path) == WHOLE


@pytest.mark.parametrize("mode", ["process"], indirect=True)
def test_gdb_in_one_task_stops_that_one_alone(running: Running, gdb: Path, tmp_path: Path) -> None:
    script = """
    tell("selected", value("$_rank"))
    tell("values", [value(name) for name in ("g_rank", "s_rank", "tls_rank")])
    ask("tbreak tick")
    tell("stop", ask("continue"))
    tell("stack", functions())
    tell("rank", value("$_rank"))
    """
    answers = Session(gdb, tmp_path).attach(script, running.tasks[1].thread)
    assert answers["selected"] == 1 and answers["values"] == [1, 1, 1]
    assert answers["rank"] == 1 and answers["stack"][:2] == ["tick", "task_main"], answers["stop"]
    assert running.finish(tmp_path) == WHOLE
