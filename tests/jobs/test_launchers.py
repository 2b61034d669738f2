"""Jobs of several hosts under the launchers that sites have: what one host prints, two print, and every end is one.

Hosts of Hydra and mpirun are namespaces with a cable between them, those of Slurm two of its daemons on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from inspector.collect.pmix_table import launched_by
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import members_of
from pieglobalsfind.jobs.processes import ancestors, processes
from pieglobalsfind.jobs.processes_of_launch import SLURM
from tests.support.job_programs import STEPS, Build, run
from tests.support.running import BIN, Job, StartJob
from tests.support.site_launchers import SiteLauncher, hydra
from tests.support.sites import Site, agents, alive, children, setting
from tests.support.waiting import wait_until

from .test_checkpoint import wait_for_next
from .test_collectors import report_in
from .test_mpir import CLIENT
from .test_tools import RANKS, check_ranks


def start(start_job: StartJob, launcher: SiteLauncher, *words: object) -> Job:
    return start_job(*launcher.command(BIN / "rankrun", *words), environment=launcher.full_environment())


def wait_until_gone(program: Path) -> None:
    wait_until(lambda: not alive(program), "processes of the job are left")


# ---- the same as on one host ----


@pytest.mark.parametrize("mode", ["whole", "lean"])
def test_ranks_that_move_between_hosts_print_what_they_print_at_home(
    mode: str, launcher: SiteLauncher, wandered: list[str], build: Build, tmp_path: Path
) -> None:
    log, program = tmp_path / "moves", build("wander.c")
    done = launcher.run("-n", 6, "--procs", 3, "--migrate", mode, "--migration-log", log, program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == wandered
    moves = [json.loads(line) for line in log.read_text().splitlines()]
    # Process 2 is alone on its host: of three processes the first host has the first two.
    assert {(move["from"], move["to"]) for move in moves} >= {(0, 1), (1, 2), (2, 0)}
    wait_until_gone(program)


def test_arguments_environment_and_input_arrive(
    launcher: SiteLauncher, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pointers to them are good on the other host."""
    monkeypatch.setenv("GUEST", "a  b'c$d")
    given = "0123456789\n" * 2000  # of more than 64 KB at once Hydra says that they are read too slowly
    done = launcher.run("-n", 2, build("guest.c"), 'x "y', "z  $HOME;exit", given=given)
    assert done.returncode == 0, done.stderr
    kept = """'x "y' 'z  $HOME;exit' 'a  b'c$d'"""
    assert sorted(done.stdout.splitlines()) == [
        f"rank 0 in process 1: {kept} {len(given)} bytes, sum {sum(given.encode())}, constructor kept",
        f"rank 1 in process 0: {kept} 0 bytes, sum 0, constructor kept",
    ]


# ---- ends ----


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("status", 3, ""),
        ("signal", 128 + signal.SIGSEGV, "rankrun: rank 3 in process 1 of the job (pid "),
        ("abort", 7, "rank 3: MPI_Abort: the program ends itself with code 7\n"),
        ("wait", 3, "  rank 0: MPI_Recv, peer 1, tag 5\n"),
    ],
)
def test_a_job_of_hosts_ends_as_one_does(
    how: str, status: int, says: str, launcher: SiteLauncher, build: Build
) -> None:
    program = build("ends.c")
    done = launcher.run("-n", 4, "--exit-on-deadlock", program, how)
    assert done.returncode == status and says in done.stderr, done.stderr
    wait_until_gone(program)


def waiting(start_job: StartJob, launcher: SiteLauncher, program: Path) -> Job:
    job = start(start_job, launcher, "-n", 4, program)
    job.wait_for("waits", times=4)
    return job


def test_a_killed_process_ends_the_job(launcher: SiteLauncher, start_job: StartJob, build: Build) -> None:
    program = build("ends.c")
    job = waiting(start_job, launcher, program)
    (process,) = children(agents(program)[1])
    os.kill(process, signal.SIGKILL)
    assert job.finish() == 128 + signal.SIGKILL
    assert "rankrun: process 1 of the job (pid " in job.stderr() and "was ended by signal 9" in job.stderr()
    wait_until_gone(program)


def test_a_host_whose_rankrun_is_killed_ends_the_job(launcher: SiteLauncher, start_job: StartJob, build: Build) -> None:
    program = build("ends.c")
    job = waiting(start_job, launcher, program)
    name = host_name(agents(program)[1])
    os.kill(agents(program)[1], signal.SIGKILL)
    assert job.finish() != 0
    assert f"rankrun: host {name} is lost: rankrun there has ended, and the job with it\n" in job.stderr()
    wait_until_gone(program)


def host_name(pid: int) -> str:
    """The name of the host that a process is on."""
    words = ["nsenter", "-t", str(pid), "--uts", "hostname"]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_a_lost_transport_leaves_no_process(
    launcher: SiteLauncher, start_job: StartJob, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a host goes down: the site's launcher ends the others; srun does not, so the others do."""
    monkeypatch.setenv("RANK_SILENCE", "5")
    program = build("ends.c")
    job = waiting(start_job, launcher, program)
    agent = agents(program)[1]
    parent = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
    assert Path(f"/proc/{parent}/exe").readlink().name.startswith("transport_")
    os.kill(parent, signal.SIGKILL)
    assert job.finish() != 0
    wait_until_gone(program)


# ---- the tools ----


def collect(launcher: SiteLauncher, process: int, *words: str) -> str:
    """What a collector on each host prints together, as a user types it: under Slurm as a step beside the job's own."""
    command = launcher.command(BIN / "inspector", *words)
    if command[0] == "srun":
        command[1:1] = ["--overlap", f"--jobid={setting(process, 'SLURM_JOB_ID')}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=launcher.full_environment())
    assert done.returncode == 0 or launcher.name == "mpich", done.stderr  # whose own end over TCP may fail
    return done.stdout


def test_collectors_answer_for_all_hosts(launcher: SiteLauncher, start_job: StartJob, build: Build) -> None:
    """Of the job that is named, and of the only one that is there."""
    program = build("placed.c")
    job = start(start_job, launcher, "-n", RANKS, "--procs", 3, program)
    job.wait_for("waits", times=RANKS)
    process = children(agents(program)[0])[0]
    job_id = members_of(str(process)).name.partition(" ")[2]
    found = report_in(collect(launcher, process, "report", "--json", "--mpi", "--job", job_id))
    check_ranks(found)
    assert found["warnings"] == []

    name = job_id if launcher.command()[0] != "srun" else f"{setting(process, 'SLURM_JOB_ID')}.0"
    found = report_in(collect(launcher, process, "stacks", "--json", "--mpi", "--job", name))
    (stack,) = found["stacks"]
    assert found["job"] == job_id and stack["ranks"] == f"0-{RANKS - 1}" and found["missing"] == []
    assert [call["function"] for call in stack["calls"]] == ["main", "wait", "MPI_Recv"]

    found = report_in(collect(launcher, process, "waits", "--json", "--mpi"))
    assert found["target"] == f"job {job_id}"
    assert found["waits"] == [{"rank": rank, "for": rank} for rank in range(RANKS)]
    assert found["cycles"] == [[rank] for rank in range(RANKS)], "each in one host"

    lines = collect(launcher, process, "events", "--no-follow", "--json", "--mpi").splitlines()
    first, *events = (json.loads(line) for line in lines if line.startswith("{"))
    assert first["process_count"] == 3 and [one["process"] for one in first["processes"]] == [0, 1, 2]
    told = [(one["event"], one["rank"]) for one in events]
    assert sorted(rank for event, rank in told if event == "created") == list(range(RANKS))
    left, arrived = ([rank for event, rank in told if event == kind] for kind in ("leaves", "arrived"))
    assert sorted(left) == sorted(arrived) and left
    assert [one["realtime"] for one in events] == sorted(one["realtime"] for one in events)
    os.kill(agents(program)[0], signal.SIGKILL)  # srun, which is killed with the test, would leave them
    job.finish()
    wait_until_gone(program)


def test_a_parallel_debugger_finds_processes_on_all_hosts(
    launcher: SiteLauncher, start_job: StartJob, build: Build
) -> None:
    """By the table of the first host's rankrun (MPIR), with each process as its own host numbers it."""
    program = build("placed.c")
    job = start(start_job, launcher, "-n", RANKS, "--procs", 3, program)
    job.wait_for("waits", times=RANKS)
    own = agents(program)
    words = [*CLIENT, "attach", str(own[0])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    rows = json.loads(done.stdout)["processes"]
    expected = [(number_at_home(pid), host_name(pid)) for place in (0, 1) for pid in children(own[place])]
    assert [(pid, host) for pid, host, _ in rows] == expected and len(rows) == 3
    assert all(Path(path).name == "rankrun" for *_, path in rows)
    os.kill(own[0], signal.SIGKILL)
    job.finish()
    wait_until_gone(program)


def number_at_home(pid: int) -> int:
    """The pid of a process in its own host's namespace."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("NSpid:"))
    return int(line.split()[-1])


def test_the_client_of_that_interface_is_one(launcher: SiteLauncher, build: Build) -> None:
    """It acquires a job of the site's own launcher, as STAT does; MPICH's has no such table."""
    program = build("wander.c", "-DSTAY", compiler=launcher.compiler)
    words = [*CLIENT, "launch", *launcher.command(program)]
    environment = {**launcher.full_environment(), "OMPI_MPIR_DO_NOT_WARN": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
    if launcher.name == "mpich":
        assert done.returncode == 1 and "has no MPIR_Breakpoint" in done.stderr, done.stderr
        return
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stdout + done.stderr
    acquired = json.loads(lines[0])
    assert acquired["state"] == 1 and [Path(path).name for *_, path in acquired["processes"]] == [program.name] * 2
    assert done.returncode == 0, done.stderr


def test_a_launcher_without_pmix_for_tools_says_so_and_goes_on(
    launcher: SiteLauncher, start_job: StartJob, build: Build
) -> None:
    """Open MPI 4.1 and Slurm 22.05 start processes by PMIx, and take no tools by it."""
    if launcher.name not in ("openmpi", "slurm-pmix"):
        pytest.skip("of launchers with PMIx alone")
    program = build("ends.c")
    job = waiting(start_job, launcher, program)
    known = processes()
    above = [pid for pid in ancestors(agents(program)[0], known) if known[pid].name in ("orted", "orterun", *SLURM)]
    for pid in (job.pid, *above):
        with pytest.raises(RanklensError, match=r"UNREACHABLE|has loaded no libpmix|in time"):
            launched_by(pid)
    assert job.process.poll() is None and above
    os.kill(agents(program)[0], signal.SIGKILL)
    job.finish()
    wait_until_gone(program)


# ---- hosts that don't take part ----


@pytest.fixture
def with_hydra(namespaces: Site, tmp_path: Path) -> SiteLauncher:
    launcher = hydra(namespaces, namespaces.shell(tmp_path))
    subprocess.run([BIN / "rankcc", "--with-mpi", launcher.compiler], check=True, timeout=300)
    return launcher


def test_another_build_on_a_host_is_refused(
    with_hydra: SiteLauncher, namespaces: Site, build: Build, tmp_path: Path
) -> None:
    program, other = build("ends.c"), tmp_path / "other"
    shutil.move(build("ends.c", "-DOTHER"), other)
    build("ends.c")
    subprocess.run(namespaces.on(1, "mount", "--bind", other, program), check=True, timeout=60)
    try:
        done = with_hydra.run("-n", 4, program)
    finally:
        subprocess.run(namespaces.on(1, "umount", program), check=True, timeout=60)
    said = f"rankrun on host beta: {program} is not the same file at the same address as on the first host"
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_folder_that_a_host_does_not_share_is_refused(
    with_hydra: SiteLauncher, namespaces: Site, build: Build, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    subprocess.run(namespaces.on(1, "mount", "-t", "tmpfs", "none", folder), check=True, timeout=60)
    try:
        done = with_hydra.run("-n", 4, "--checkpoint", folder, build("ends.c"))
    finally:
        subprocess.run(namespaces.on(1, "umount", folder), check=True, timeout=60)
    said = f"rankrun on host beta: {folder} is not the folder that it is on the first host: "
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not list(folder.glob(".hosts*"))


@pytest.mark.parametrize("option", ["--hosts", "--remote-shell", "--host-timeout"])
def test_options_that_are_gone_name_the_new_way(option: str, build: Build) -> None:
    done = run(option, "red", "-n", 4, build("ends.c"))
    assert done.returncode == 2 and "mpiexec -n 2 -hosts red,blue rankrun -n 64 ./solver" in done.stderr


def test_srun_without_a_way_to_find_each_other(launcher: SiteLauncher, build: Build) -> None:
    if not launcher.name.startswith("slurm"):
        pytest.skip("of Slurm alone")
    words = ["srun", "--mpi=none", "-n", "2", str(BIN / "rankrun"), "-n", "2", str(build("ends.c"))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=launcher.full_environment())
    assert done.returncode != 0 and "add --mpi=pmi2 or --mpi=pmix" in done.stderr, done.stderr


# ---- checkpoints ----


def test_a_checkpoint_of_two_hosts_goes_on_on_one_and_on_two(
    launcher: SiteLauncher, start_job: StartJob, stepped: list[str], build: Build, tmp_path: Path
) -> None:
    folder, go, program = tmp_path / "kept", tmp_path / "go", build("steps.c")
    job = start(start_job, launcher, "-n", 4, "--checkpoint", folder, "--every", 0.1, program, STEPS, go)
    job.wait_for("half")
    wait_for_next(folder)
    os.kill(agents(program)[0], signal.SIGKILL)
    assert job.finish() != 0
    wait_until_gone(program)
    go.touch()
    for done in (run("--restart", folder, "--procs", 2), launcher.run("--restart", folder)):
        assert done.returncode == 0, done.stderr
        assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == stepped
