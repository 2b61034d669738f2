"""What a debugger has set in ranks stops them alone, wherever they are, and leaves nothing when it is gone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import textwrap
import threading
from pathlib import Path

import pytest

from tests.jobs.test_checkpoint import wait_for_next, whole
from tests.support.gdb.session import Session
from tests.support.inspector.turns import EXPECTED, RANKS, TURNS, Turns, results
from tests.support.job_programs import PROGRAMS as JOB_PROGRAMS
from tests.support.job_programs import STEPS, run
from tests.support.rsp import BASE, Client, Gone, connected, is_stopped, listening, served
from tests.support.running import ROOT, Job, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

FORKS = ROOT / "tests" / "inspector" / "sources" / "forks.c"
BEGIN = """
for setting in ("sysroot /", "remotetimeout 60", "auto-load python-scripts off", "schedule-multiple on"):
    ask("set " + setting)
ask("target extended-remote | COMMAND")
def go():
    open(GO, "w").close()
"""


def script(command: str, go: Path, text: str) -> str:
    return BEGIN.replace("COMMAND", command).replace("GO", repr(str(go))) + textwrap.dedent(text)


# ---- one rank, several ranks ----


@pytest.mark.parametrize("method", ["hls", "pip", "pipthread", "fs", "swap", "tls-word"])
def test_every_method(method: str, turns: Turns) -> None:
    """One rank stops as often as it works, and no other one; it can be stepped, and what it watches is its own."""
    job = turns.virtual(method)
    pid, work = turns.process_of(job, 0), turns.address_of(job, 1)
    thread = f"p{BASE + 1:x}.{BASE + 1:x}"
    with served(pid, "--control") as client:
        running(client, turns, job)
        turns.go.touch()
        for _ in range(TURNS):
            assert client.reply() == f"T05thread:{thread};swbreak:;"
            assert word(client.ask("p10")) == work
            assert client.ask(f"z0,{work:x},1") == "OK"
            assert client.ask(f"vCont;s:{thread}") == f"T05thread:{thread};"
            assert client.ask(f"Z0,{work:x},1") == "OK"
            client.send("vCont;c")
        assert client.reply() == f"W00;process:{BASE + 1:x}"
        assert results(job) == EXPECTED


@pytest.mark.parametrize("elements", [1, 2])
def test_every_rank_an_inferior(elements: int, gdb: Path, turns: Turns, tmp_path: Path) -> None:
    """Each stop is in the inferior of the rank that it is of; each exit has the rank's own status."""
    job = turns.virtual("pie", "--pes", elements, more=("status",))
    pid = turns.process_of(job, 0)
    text = f"""
    for rank in range({RANKS}):
        if rank:
            ask("add-inferior")
            ask(f"inferior {{rank + 1}}")
        ask(f"attach {{{BASE} + rank}}")
    ask("break weigh")
    go()
    hits, ends = [], []
    gdb.events.exited.connect(lambda event: ends.append([event.inferior.num - 1, event.exit_code]))
    while len(hits) + len(ends) < 100:
        before = len(ends)
        ask("continue")
        if len(ends) > before:
            left = [one.num for one in gdb.inferiors() if one.pid]
            if not left:
                break
            ask(f"inferior {{left[0]}}")
        else:
            hits.append([gdb.selected_inferior().num - 1, value("number"), value("turn")])
    tell("hits", hits)
    tell("ends", ends)
    """
    command = f"{built('inspector')} serve {pid} --control"
    answers = Session(gdb, tmp_path).run(script(command, turns.go, text), source=False)
    hits = [tuple(hit) for hit in answers["hits"]]
    assert all(inferior == rank for inferior, rank, _ in hits), hits
    assert sorted(hits) == sorted((rank, rank, turn) for rank in range(RANKS) for turn in range(TURNS))
    assert sorted(map(tuple, answers["ends"])) == [(rank, rank) for rank in range(RANKS)]
    assert job.finish() == RANKS - 1
    assert sorted(line for line in job.lines if " did " in line) == EXPECTED


# ---- processes and threads that come and go ----


def test_new_processes_and_threads(gdb: Path, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Neither a child, nor a program that it executes, nor a thread without a rank stops, or dies of a breakpoint."""
    program, go = tmp_path / "forks", tmp_path / "go"
    shared.copied([built("rankcc"), "-g", "-O0", FORKS], program)
    job = start_job(built("rankrun"), "-n", RANKS, program, TURNS, go)
    job.wait_for("is in process", times=RANKS)
    text = """
    ask("break work")
    go()
    hits = []
    while gdb.selected_inferior().pid and len(hits) < 100:
        ask("continue")
        if gdb.selected_inferior().pid:
            hits.append([value("number"), value("turn")])
    tell("hits", hits)
    """
    command = f"{built('inspector')} serve {job.pid} --control --rank 1"
    answers = Session(gdb, tmp_path).run(script(command, go, text), source=False)
    assert answers["hits"] == [[1, turn] for turn in range(TURNS)]
    assert job.finish() == 0, job.stderr()
    calls = 2 * sum(range(TURNS))
    assert sorted(job.lines[RANKS:]) == [f"rank {rank} did {calls}, 0 failed" for rank in range(RANKS)]


# ---- ranks that move, and are written to files ----


def ranks_of(job: Job) -> int:
    """How many ranks of a job can be looked at."""
    try:
        with served("--job", job.pid) as client:
            client.start()
            return len(client.states())
    except (Gone, AssertionError):
        return 0


@pytest.fixture
def wander(tmp_path: Path, shared: Shared) -> Path:
    program = tmp_path / "wander"
    shared.copied([built("rankcc"), "-g", "-O0", JOB_PROGRAMS / "wander.c"], program)
    return program


@pytest.mark.parametrize("mode", ["whole", "lean"])
def test_a_breakpoint_goes_along(mode: str, gdb: Path, start_job: StartJob, wander: Path, tmp_path: Path) -> None:
    """Into each process of the job, and none stays where the rank was."""
    go, rounds = tmp_path / "go", 6
    job = start_job(built("rankrun"), "-n", RANKS, "--procs", 2, "--migrate", mode, wander, go)
    text = f"""
    ask("break wrong_values")
    go()
    stops = []
    while gdb.selected_inferior().pid and len(stops) < 100:
        ask("continue")
        if gdb.selected_inferior().pid:
            said = ask("info os processes")
            (line,) = [line for line in said.splitlines() if line.startswith("{BASE + 1}")]
            process = line.split("process ")[1].split()[0]
            rank, names = value("my_rank"), functions()
            ask("finish")
            stops.append([rank, names, value("$"), process])
    tell("stops", stops)
    """
    wait_until(lambda: ranks_of(job) == RANKS, "the job's processes did not come up")
    command = f"{built('inspector')} serve --job {job.pid} --control --rank 1"
    answers = Session(gdb, tmp_path).run(script(command, go, text), source=False)
    assert [(rank, names, result) for rank, names, result, _ in answers["stops"]] == [
        (1, ["wrong_values", "main"], 0)
    ] * rounds
    assert len({process for _, _, _, process in answers["stops"]}) == 2
    assert job.finish() == 0, job.stderr()
    assert all(": 0 wrong" in line for line in job.lines) and len(job.lines) == RANKS * rounds


def test_no_checkpoint_has_a_breakpoint(gdb: Path, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """A restart without a debugger would meet it, and die of SIGTRAP."""
    folder, aside, go, program = tmp_path / "kept", tmp_path / "aside", tmp_path / "go", tmp_path / "steps"
    shared.copied([built("rankcc"), "-g", "-O1", JOB_PROGRAMS / "steps.c"], program)
    undisturbed = run("-n", RANKS, program, STEPS)
    wanted = sorted(line for line in undisturbed.stdout.splitlines() if line.startswith("rank "))
    words = [built("rankrun"), "-n", RANKS, "--procs", 2, "--checkpoint", folder, "--every", 0.3]
    job = start_job(*words, program, STEPS, go)
    lines = (JOB_PROGRAMS / "steps.c").read_text().splitlines()
    last = next(number for number, line in enumerate(lines, 1) if "MPI_Finalize" in line)
    job.wait_for("half")

    def keep_one() -> None:
        wait_for_next(folder)
        shutil.copytree(whole(folder)[-1], aside)
        go.touch()

    keeper = threading.Timer(0, keep_one)
    keeper.start()
    text = f"""
    ask("break steps.c:{last}")
    ask("continue")
    tell("rank", value("rank"))
    tell("functions", functions())
    """
    command = f"{built('inspector')} serve --job {job.pid} --control --rank 1"
    answers = Session(gdb, tmp_path).run(script(command, go, text), source=False)
    keeper.join()
    assert (answers["rank"], answers["functions"]) == (1, ["main"]), "it is there again after each checkpoint"
    assert job.finish() == 0, job.stderr()
    done = run("--restart", aside)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == wanted


# ---- ends ----


def running(client: Client, turns: Turns, job: Job, rank: int = 1) -> None:
    """Have the job run, with a breakpoint where a rank works."""
    client.start()
    client.attach(rank)
    assert client.ask(f"Z0,{turns.address_of(job, rank):x},1") == "OK"
    client.send("vCont;c")
    wait_until(lambda: not stands(job.pid), "the job does not go on")


def stands(pid: int) -> bool:
    """Whether a thread of the process is stopped; one that is traced may run."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return any((task / "stat").read_text().rpartition(") ")[2][0] == "t" for task in tasks)


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
@pytest.mark.parametrize("way", ["client", "TERM", "INT", "HUP"])
def test_ends(way: str, stopped: bool, turns: Turns) -> None:
    """The client's or the server's end in the midst of it: no breakpoint is left, and the job ends as it would."""
    job = turns.virtual("pie", "--pes", 2)
    pid = turns.process_of(job, 0)
    with listening(pid, "--control", "--port", 0) as (address, server):
        client = connected(address)
        running(client, turns, job)
        if stopped:
            turns.go.touch()
            assert client.reply() == f"T05thread:p{BASE + 1:x}.{BASE + 1:x};swbreak:;"
        if way == "client":
            client.close()
        else:
            os.kill(server.pid, getattr(signal, f"SIG{way}"))
            assert server.wait(60) == 128 + getattr(signal, f"SIG{way}")
        wait_until(lambda: not is_stopped(pid), "the job is still traced")
        turns.go.touch()
        assert results(job) == EXPECTED


def test_ctrl_c(turns: Turns) -> None:
    job = turns.virtual("pie", "--pes", 2)
    pid = turns.process_of(job, 0)
    with served(pid, "--control") as client:
        running(client, turns, job)
        for _ in range(20):
            client.interrupt()
            assert client.reply().startswith(f"T02thread:p{BASE + 1:x}.{BASE + 1:x};")
            assert stands(pid)
            client.send("vCont;c")
        turns.go.touch()
        assert client.reply() == f"T05thread:p{BASE + 1:x}.{BASE + 1:x};swbreak:;"
        assert client.ask(f"D;{BASE + 1:x}") == "OK"
        assert results(job) == EXPECTED


def switch_address(pid: int) -> int:
    """Where the runtime leaves one rank for another."""
    library = built("rankrun").resolve().parents[1] / "lib" / "librankmpi.so"
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout.splitlines()
    offset = next(int(line.split()[0], 16) for line in symbols if line.endswith(" rankmpi.context_switch"))
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return min(int(line.partition("-")[0], 16) for line in lines if line.endswith(str(library))) + offset


@pytest.mark.parametrize("elements", [1, 2])
def test_instructions_through_a_switch(elements: int, turns: Turns) -> None:
    """A rank that gives up the processor in the midst of a step goes on behind the switch, on its own stack."""
    job = turns.virtual("pie", "--pes", elements)
    pid = turns.process_of(job, 0)
    switch = switch_address(pid)
    step = f"vCont;s:p{BASE + 1:x}.{BASE + 1:x};c:p{BASE + 1:x}.-1"
    with served(pid, "--control") as client:
        client.start()
        client.attach(1)
        assert client.ask(f"Z0,{switch:x},1") == "OK"
        assert client.ask("vCont;c") == f"T05thread:p{BASE + 1:x}.{BASE + 1:x};swbreak:;"
        assert client.ask(f"z0,{switch:x},1") == "OK"
        pointer = word(client.ask("p7"))
        returns, pcs = word(client.ask(f"m{pointer:x},8")), [word(client.ask("p10"))]
        while len(pcs) < 40 and pcs[-1] != returns:
            assert client.ask(step) == f"T05thread:p{BASE + 1:x}.{BASE + 1:x};"
            pcs.append(word(client.ask("p10")))
        assert pcs[0] == switch and pcs[-1] == returns and pcs[:10] == sorted(pcs[:10]), list(map(hex, pcs))
        assert word(client.ask("p7")) == pointer + 8
        assert client.ask("D") == "OK"
        turns.go.touch()
        assert results(job) == EXPECTED


def word(digits: str) -> int:
    """A register or a word of memory."""
    return int.from_bytes(bytes.fromhex(digits), "little")


def test_a_step_of_a_rank_that_waits(turns: Turns) -> None:
    """It is taken where the rank goes on."""
    job = turns.virtual("pie")
    pid = turns.process_of(job, 0)
    with served(pid, "--control") as client:
        client.start()
        waiting = next(rank for rank, state in sorted(client.states().items()) if not state.startswith("running"))
        client.attach(waiting)
        before, pointer = word(client.ask("p10")), client.ask("p7")
        assert client.ask("vCont;s") == f"T05thread:p{BASE + waiting:x}.{BASE + waiting:x};"
        assert 0 < abs(word(client.ask("p10")) - before) < 16 or client.ask("p7") != pointer
        assert client.states()[waiting].startswith("running on thread")
        client.close()
    turns.go.touch()
    assert results(job) == EXPECTED


# ---- what is refused ----


def test_one_debugger_at_a_time(turns: Turns) -> None:
    job = turns.virtual("pie")
    with listening(turns.process_of(job, 0), "--control", "--port", 0) as (address, _):
        first = connected(address)
        first.start()
        with pytest.raises(Gone):
            connected(address).start()
        first.attach(1)
        first.close()
        second = connected(address)
        second.start()
        assert second.attach(2).startswith("T05")
        second.close()


def refusal(*words: object) -> str:
    done = subprocess.run(
        [built("inspector"), "serve", *map(str, words), "--control", "--port", "0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = str(done.stderr).splitlines()
    return line


def test_ranks_of_a_file(core: Path) -> None:
    assert "the ranks of a file can't be controlled" in refusal(core)


def test_ranks_that_are_processes(turns: Turns) -> None:
    job = turns.virtual("tpsl")
    job.wait_for("is in process")
    assert "are processes, and can't be controlled" in refusal(job.pid)
