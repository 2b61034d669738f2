"""Tables of processes, rankrun's own and `rankmpir`'s, read as parallel debuggers read them (MPIR 1.0).

By GDB, and by a client that is written to the interface's document (tests/support/mpir_client.py); that it is one is
seen where it acquires a job of Open MPI's own launcher (and of Slurm's: test_launchers.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.job_programs import Build
from tests.support.running import BIN, ROOT, Job, StartJob

from .test_processes import children

READ_TABLE = """
def text(expression):
    return gdb.parse_and_eval(expression).string()

def table(name):
    rows = ["MPIR_proctable[%d]" % i for i in range(value("MPIR_proctable_size"))]
    tell(name, [[value(one + ".pid"), text(one + ".host_name"), text(one + ".executable_name")] for one in rows])
    tell(name + " state", value("MPIR_debug_state"))
"""


def test_the_table_names_every_process(build: Build, gdb: Path, tmp_path: Path) -> None:
    script = """
    ask("set breakpoint pending on")
    ask("break MPIR_Breakpoint")
    ask("run")
    count = value("MPIR_proctable_size")
    tell("state", value("MPIR_debug_state"))
    tell("pids", [value("MPIR_proctable[%d].pid" % i) for i in range(count)])
    tell("hosts", [ask("print MPIR_proctable[%d].host_name" % i) for i in range(count)])
    pid = gdb.selected_inferior().pid
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        tell("children", [int(one) for one in file.read().split()])
    ask("kill")
    """
    program = build("ends.c")
    answers = Session(gdb, tmp_path).run(script, "--args", BIN / "rankrun", "-n", 4, "--procs", 3, program)
    assert answers["pids"] == answers["children"] and len(answers["pids"]) == 3
    assert answers["state"] == 1, "MPIR_DEBUG_SPAWNED"
    assert all(socket.gethostname() in one for one in answers["hosts"])


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    found = start_job(rankrun, "-n", 4, "--procs", 3, build("placed.c"))
    found.wait_for("waits", times=4)
    return found


def rows(pids: list[int]) -> list[list[object]]:
    """What the table has to hold."""
    return [[pid, socket.gethostname(), str(Path(f"/proc/{pid}/exe").readlink())] for pid in pids]


def test_a_process_of_its_own_publishes_a_running_job(job: Job, start_job: StartJob, gdb: Path, tmp_path: Path) -> None:
    expected = rows(children(job.pid))
    publisher = start_job(BIN / "inspector", "mpir", children(job.pid)[1])
    said = publisher.wait_for("a debugger that attaches")
    assert said == f"rankmpir: a debugger that attaches to process {publisher.pid} finds 3 processes"
    answers = Session(gdb, tmp_path).run(READ_TABLE + "table('attached')", "-p", publisher.pid)
    assert answers["attached"] == expected and answers["attached state"] == 1, "MPIR_DEBUG_SPAWNED"
    os.kill(publisher.pid, signal.SIGSTOP)  # it misses nothing
    os.killpg(job.pid, signal.SIGKILL)
    os.kill(publisher.pid, signal.SIGCONT)
    assert publisher.finish() == 0


def test_a_debugger_that_starts_the_publisher(job: Job, gdb: Path, tmp_path: Path) -> None:
    pids = children(job.pid)
    script = """
    ask("break MPIR_Breakpoint")
    ask("run")
    tell("stopped in", gdb.newest_frame().name())
    table("launched")
    os.kill(%d, 9)
    ask("continue")
    tell("exited", value("$_exitcode"))
    """
    table = "\n".join("    " + line if line else "" for line in READ_TABLE.splitlines())
    expected = rows(pids)
    answers = Session(gdb, tmp_path).run(table + script % job.pid, "--args", BIN / "rankmpir", *pids)
    assert answers["stopped in"] == "MPIR_Breakpoint"
    assert answers["launched"] == expected and answers["launched state"] == 1
    assert answers["exited"] == 0


CLIENT = (sys.executable, str(ROOT / "tests" / "support" / "mpir_client.py"))


def test_a_client_launches_rankrun(start_job: StartJob, build: Build, rankrun: Path) -> None:
    """Before any rank runs the client has the table; the job then goes on to its end."""
    job = start_job(*CLIENT, "launch", rankrun, "-n", 4, "--procs", 3, build("placed.c"))
    acquired = json.loads(job.wait_for('{"state": 1'))
    assert not any("waits" in line for line in job.lines)
    job.wait_for("waits", times=4)
    (starter,) = children(job.pid)
    assert acquired["processes"] == rows(children(starter))
    assert {"MPIR_i_am_starter", "MPIR_partial_attach_ok"} <= set(acquired["has"])
    os.kill(starter, signal.SIGKILL)
    assert job.finish() == 256 - signal.SIGKILL


def test_a_client_attaches_to_what_stands_for_a_launcher(job: Job, start_job: StartJob) -> None:
    publisher = start_job(BIN / "inspector", "mpir", job.pid)
    publisher.wait_for("a debugger that attaches")
    words = [*CLIENT, "attach", str(publisher.pid)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["processes"] == rows(children(job.pid))
    os.killpg(job.pid, signal.SIGKILL)
    assert publisher.finish() == 0


def has_openmpi() -> bool:
    """Whether programs can be built for it: Debian has the compiler's command in another package than the headers."""
    if shutil.which("mpicc.openmpi") is None:
        return False
    folders = subprocess.run(["mpicc.openmpi", "--showme:incdirs"], capture_output=True, text=True, timeout=60)
    return any(Path(folder, "mpi.h").exists() for folder in folders.stdout.split())


def test_the_client_knows_a_launcher_that_is_not_ours(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_openmpi():
        pytest.skip("this machine has no Open MPI, or not its headers (make test-launchers installs them)")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MPIR_DO_NOT_WARN"):
        monkeypatch.setenv(name, "1")
    program = build("wander.c", "-DSTAY", compiler="mpicc.openmpi")
    words = [*CLIENT, "launch", "mpirun.openmpi", "--oversubscribe", "-n", "3", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    acquired = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert acquired["state"] == 1 and len({pid for pid, *_ in acquired["processes"]}) == 3, done.stderr
    assert [row[1:] for row in acquired["processes"]] == [[socket.gethostname().partition(".")[0], str(program)]] * 3


def test_what_can_t_be_published_is_said(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for words, said in (
        (["rankmpir"], "usage: rankmpir [--while PID] PID|PID@HOST:PROGRAM..."),
        (["rankmpir", "1x"], "'1x' is not a pid"),
        (["rankmpir", "-1"], "'-1' is not a pid"),
        (["rankmpir", "9" * 30], "is not a pid"),
        (["rankmpir", str(ended.pid)], f"process {ended.pid} can't be watched: No such process"),
        (["inspector", "mpir", str(ended.pid)], f"there is no process {ended.pid}"),
        (["inspector", "mpir", "nobody"], "no process of job nobody can be found here"),
        (["inspector", "mpir", str(tmp_path)], "holds no whole checkpoint"),
    ):
        done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and said in done.stderr and not done.stdout, words
