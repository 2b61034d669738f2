"""Real tasks of Process-in-Process: found by a live process, a core file, and GDB, by what they say of themselves."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING, Region
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from tests.conftest import BIN, StartJob
from tests.gdb.conftest import make_core
from tests.gdb.session import Session
from tests.lldb.conftest import find_lldb
from tests.lldb.session import Session as LldbSession
from tests.tasks.truth import Truth, told_by

HOME = Path(os.environ.get("PIP_HOME", ""))
HERE = Path(__file__).resolve().parent
TASKS = 3

pytestmark = pytest.mark.skipif(not os.environ.get("PIP_HOME"), reason="PIP_HOME is not set")


@dataclass(frozen=True)
class Running:
    """The root's pid, and what each task has said."""

    pid: int
    tasks: dict[int, Truth]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with root and task; a task is a shared object, which stock glibc lets PiP load."""
    folder = tmp_path_factory.mktemp("pip")
    library = ["-L", str(HOME / "lib"), f"-Wl,-rpath,{HOME / 'lib'}", "-lpip", "-lpthread"]
    task = [str(HERE / "main.c"), str(HERE.parent / "tasks" / "task.c")]
    for name, kind, sources in (("root", "-pie", [str(HERE / "root.c")]), ("task", "-shared", task)):
        command = ["gcc", "-g", "-O0", "-fPIC", kind, "-I", str(HOME / "include"), *sources]
        subprocess.run([*command, "-o", str(folder / name), *library], check=True, timeout=60)
    return folder


@pytest.fixture
def running(start_job: StartJob, programs: Path) -> Running:
    environment = {**os.environ, "PIP_MODE": "thread"}
    job = start_job(programs / "root", TASKS, programs / "task", environment=environment)
    return Running(job.pid, told_by(job, TASKS))


def check(target: Target, running: Running) -> None:
    table = decode(target)
    assert (table.runtime, table.method, table.warnings) == ("PiP", "pipthread", ())
    assert [one.rank for one in table.ranks] == sorted(running.tasks)
    for rank in table.ranks:
        assert (rank.state, rank.kernel_thread) == (RUNNING, running.tasks[rank.rank].thread)
        # Of a thread that is in no system call just now, a live process does not tell the stack pointer.
        if isinstance(rank.stack, Region):
            assert running.tasks[rank.rank].stack in rank.stack
        else:
            assert target.is_live


def test_tasks_of_a_running_process_and_of_its_core(running: Running, tmp_path: Path) -> None:
    check(open_target(pid=running.pid), running)
    check(open_target(core=str(make_core(running.pid, tmp_path))), running)


def test_addresses_are_the_tasks_own(running: Running) -> None:
    for number, truth in running.tasks.items():
        words = [hex(truth.variable), hex(truth.thread_local)]
        said = subprocess.run(
            [BIN / "pieglobalsfind", "--pid", str(running.pid), *words], capture_output=True, text=True, timeout=60
        ).stdout.splitlines()
        assert f"rank {number}  data" in said[0] and "g_rank+0x0" in said[0]
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
    own = {one["name"]: one["groups"] for one in report["globals"] if one["name"] in ("g_rank", "s_rank", "tls_rank")}
    expected = [{"ranks": str(rank), "value": str(rank)} for rank in range(TASKS)]
    assert own == {"g_rank": expected, "s_rank": expected, "tls_rank": expected}
    assert report["pointers"]["alarms"] == [], "the first copy is the original, and no lapse"


def test_gdb_shows_each_task_s_own_and_stops_in_all(running: Running, gdb: Path, tmp_path: Path) -> None:
    script = """
    for name in ("g_rank", "s_rank", "tls_rank"):
        tell(name, ask("rank print " + name).split())
    for rank in range(3):
        ask("rank %d" % rank)
        tell("thread of %d" % rank, gdb.selected_thread().ptid[1])
        tell("values of %d" % rank, [value(name) for name in ("g_rank", "s_rank", "tls_rank")])
        tell("stack of %d" % rank, functions())
    ask("break tick")
    met = []
    while len(set(met)) < 3 and len(met) < 50:
        ask("continue")
        met.append(value("$_rank"))
        assert value("g_rank") == met[-1]
    tell("met", sorted(set(met)))
    """
    told = Session(gdb, tmp_path).attach(script, running.pid)
    for name in ("g_rank", "s_rank", "tls_rank"):
        assert told[name] == [word for rank in range(TASKS) for word in (f"{rank}:", str(rank))]
    for rank, truth in running.tasks.items():
        assert told[f"thread of {rank}"] == truth.thread and told[f"values of {rank}"] == [rank] * 3
        assert {"tick", "task_main", "main"} <= set(told[f"stack of {rank}"])
    assert told["met"] == [0, 1, 2]


def test_lldb_shows_each_task_s_own(running: Running, tmp_path: Path) -> None:
    script = """
    for name in ("g_rank", "s_rank", "tls_rank"):
        tell(name, ask("rank print " + name).split())
    for rank in range(3):
        ask("rank %d" % rank)
        tell("values of %d" % rank, [value(name) for name in ("g_rank", "s_rank")])
        tell("stack of %d" % rank, functions(target.GetProcess().GetSelectedThread()))
    """
    told = LldbSession(find_lldb(), tmp_path).attach(script, running.pid)
    for name in ("g_rank", "s_rank", "tls_rank"):
        assert told[name] == [word for rank in range(TASKS) for word in (f"{rank}:", str(rank))]
    for rank in range(TASKS):
        assert told[f"values of {rank}"] == [rank] * 2
        assert {"tick", "task_main", "main"} <= set(told[f"stack of {rank}"])
