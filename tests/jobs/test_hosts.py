"""Jobs of several hosts over real TCP: what one host prints, two print, and what goes amiss is one host's by name.

Hosts are two addresses of this machine, which any user may have, and two sets of namespaces with a cable between them,
which take root: in these a process has the pid of another host's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.job_programs import STEPS, Build, run, run_on
from tests.support.running import BIN, Job, StartJob
from tests.support.sites import (
    LAST_PID,
    LOCAL,
    SIX,
    SPACES_OF_SIX,
    Site,
    agents,
    alive,
    children,
    cut,
    only_where_possible,
    spaces,
)
from tests.support.waiting import wait_until

from .test_checkpoint import wait_for_next
from .test_collectors import libraries, report_in
from .test_tools import RANKS, check_ranks


def start(start_job: StartJob, site: Site, shell: Path, *words: object) -> Job:
    return start_job(*site.home, BIN / "rankrun", *site.options(shell), *words)


# ---- the same as on one host ----


@pytest.mark.parametrize("mode", ["whole", "lean"])
def test_ranks_that_move_between_hosts_print_what_they_print_at_home(
    mode: str, site: Site, wandered: list[str], build: Build, tmp_path: Path
) -> None:
    log, program = tmp_path / "moves", build("wander.c")
    words = ("-n", 6, "--procs", 3, "--migrate", mode, "--migration-log", log, program)
    done = run_on(site, site.shell(tmp_path), *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == wandered
    moves = [json.loads(line) for line in log.read_text().splitlines()]
    # Process 2 is alone on its host: of three processes the first host has the first two.
    assert {(move["from"], move["to"]) for move in moves} >= {(0, 1), (1, 2), (2, 0)}
    assert alive(program) == []


def test_hosts_of_ipv6_alone(wandered: list[str], build: Build, tmp_path: Path) -> None:
    """By their addresses, of which remote shells want no brackets; there is no other way between them."""
    only_where_possible()
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with spaces(SPACES_OF_SIX, SIX) as site:
        first, second = (f"[{name}]" for name in site.names)
        words = ("--hosts", f"{first}:2,{second}", "--remote-shell", site.shell(tmp_path))
        done = run(*words, "-n", 6, "--migrate", "lean", build("wander.c"), before=site.home)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(done.stdout.splitlines()) == wandered
        ended = run(*words, "-n", 6, build("ends.c"), "signal", before=site.home)
        assert f"on host {site.names[0]})" in ended.stderr, ended.stderr


def test_arguments_environment_and_input_arrive(
    site: Site, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell on the way has touched them, and pointers to them are good on the other host."""
    monkeypatch.setenv("GUEST", "a  b'c$d")
    given = "0123456789\n" * 20000  # more than a pipe holds
    words = ("-n", 2, build("guest.c"), 'x "y', "z  $HOME;exit")
    done = run_on(site, site.shell(tmp_path), *words, given=given)
    assert (done.returncode, done.stderr) == (0, "")
    kept = """'x "y' 'z  $HOME;exit' 'a  b'c$d'"""
    assert sorted(done.stdout.splitlines()) == [
        f"rank 0 in process 1: {kept} {len(given)} bytes, sum {sum(given.encode())}, constructor kept",
        f"rank 1 in process 0: {kept} 0 bytes, sum 0, constructor kept",
    ]


# ---- the tools ----


@pytest.fixture
def placed(start_job: StartJob, namespaces: Site, build: Build, tmp_path: Path) -> Job:
    """Process 0 on the first host, 1 and 2 on the second; the pids are the same as far as they can be."""
    same_pids = "echo 20000 | nsenter -t $pid --pid --mount tee " + LAST_PID + ' >"$0.log"'
    shell = namespaces.shell(tmp_path)
    shell.write_text(shell.read_text().replace("exec nsenter", f"{same_pids}\nexec nsenter"))
    words = ("-n", RANKS, "--procs", 3, "--hosts", "alpha,beta:2", "--remote-shell", shell, build("placed.c"))
    job = start_job(*namespaces.home, BIN / "rankrun", *words)
    job.wait_for("waits", times=RANKS)
    return job


def inside(pid: int) -> int:
    """The pid that a process has in its own namespace."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])


def test_one_report_of_two_hosts_whose_pids_are_the_same(
    placed: Job, namespaces: Site, build: Build, tmp_path: Path
) -> None:
    found_agents = agents(build("placed.c"), placed.pid)
    (alone,), others = children(found_agents["alpha"]), children(found_agents["beta"])
    assert inside(alone) in map(inside, others), "the test is of pids that are the same"
    report = [BIN / "inspector", "report", "--json", "--job"]
    own = subprocess.run(namespaces.on(0, *report, inside(alone)), capture_output=True, text=True, timeout=120)
    found = json.loads(own.stdout)
    assert {one["process"] for one in found["ranks"] if one["state"] != "migrated-out"} <= {0, 1}
    assert "of 3 processes of the job 2 can't be found: 1, 2" in found["warnings"]
    node = tmp_path / "node"
    first_host, second_host = namespaces.inside
    node.write_text(
        f"#!/bin/sh\n[ $PMI_RANK = 0 ] && pid={first_host} || pid={second_host}\n"
        'exec nsenter -t $pid --net --pid --mount --uts -- "$@"\n'
    )
    node.chmod(0o755)
    launch = ["mpiexec.mpich", "-n", "2", node, *report, found["target"].partition(" ")[2], "--mpi"]
    # As between hosts: nothing goes through this machine's memory.
    network = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries(tmp_path)), **network}
    done = subprocess.run([str(one) for one in launch], capture_output=True, text=True, timeout=120, env=environment)
    found = report_in(done.stdout)  # MPICH's own end over TCP may fail, which its launcher says then
    check_ranks(found)
    assert found["warnings"] == []


def test_events_of_a_host_are_of_its_processes(placed: Job, namespaces: Site, build: Build) -> None:
    one = children(agents(build("placed.c"), placed.pid)["beta"])[0]
    words = namespaces.on(1, BIN / "inspector", "events", "--no-follow", "--json", inside(one))
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    head, *rows = map(json.loads, done.stdout.splitlines())
    assert [(one["process"], one["node"]) for one in head["processes"]] == [(1, "beta"), (2, "beta")]
    moves = {(row["event"], row["rank"], row["process"], row["other_process"]) for row in rows if row.get("moves")}
    assert moves == {("leaves", 5, 2, 0), ("arrived", 1, 1, 0), ("leaves", 3, 1, 2), ("arrived", 3, 2, 1)}


def test_a_debugger_finds_every_process_with_its_host(addresses: Site, build: Build, gdb: Path, tmp_path: Path) -> None:
    script = """
    ask("set breakpoint pending on")
    ask("break MPIR_Breakpoint")
    ask("run")
    rows = ["MPIR_proctable[%d]" % i for i in range(value("MPIR_proctable_size"))]
    tell("hosts", [gdb.parse_and_eval(one + ".host_name").string() for one in rows])
    tell("programs", [gdb.parse_and_eval(one + ".executable_name").string() for one in rows])
    commands = []
    for one in rows:
        with open("/proc/%d/cmdline" % value(one + ".pid"), "rb") as file:
            commands.append(file.read().decode().split("\\0"))
    tell("commands", commands)
    ask("kill")
    """
    program = build("ends.c")
    names = ",".join((*LOCAL, LOCAL[0]))  # two places on the first
    words = (BIN / "rankrun", "--hosts", names, "--remote-shell", addresses.shell(tmp_path), "-n", 4, program)
    told = Session(gdb, tmp_path).run(script, "--args", *words)
    assert told["hosts"] == [LOCAL[0], LOCAL[0], LOCAL[1]]
    assert set(told["programs"]) == {str((BIN / "rankrun").resolve())}
    assert all(str(program) in one for one in told["commands"])
    wait_until(lambda: not alive(program), "processes of the job are left")


# ---- ends ----


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("status", 3, ""),
        ("signal", 128 + signal.SIGSEGV, "rankrun: rank 3 in process 1 of the job (pid # on host {}) was ended by "),
        ("abort", 7, "rankrun on host {}: rank 3: MPI_Abort: the program ends itself with code 7\n"),
        ("wait", 3, "rankrun: deadlock: no rank can go on\n  rank 0: MPI_Recv, peer 1, tag 5\n"),
    ],
)
def test_a_job_of_hosts_ends_as_one_does(
    how: str, status: int, says: str, addresses: Site, build: Build, tmp_path: Path
) -> None:
    program = build("ends.c")
    done = run_on(addresses, addresses.shell(tmp_path), "-n", 4, "--exit-on-deadlock", program, how)
    said = "".join("#" if word == "#" else word for word in without_pids(done.stderr))
    assert done.returncode == status and said.startswith(says.format(LOCAL[1])), done.stderr
    assert bool(says) == bool(said) and alive(program) == []


def without_pids(text: str) -> str:
    head, found, rest = text.partition("(pid ")
    return f"{head}(pid # {rest.partition(' ')[2]}" if found else text


def test_a_host_that_is_lost_ends_the_job(site: Site, start_job: StartJob, build: Build, tmp_path: Path) -> None:
    program = build("ends.c")
    job = start(start_job, site, site.shell(tmp_path), "-n", 4, program)
    job.wait_for("waits", times=4)
    os.kill(agents(program, job.pid)[site.names[1]], signal.SIGKILL)
    assert job.finish() == 2
    assert f"rankrun: host {site.names[1]} is lost: rankrun there has ended, and the job with it\n" in job.stderr()
    wait_until(lambda: not alive(program), "processes of the job are left")


def test_a_host_that_is_silent_ends_the_job(
    namespaces: Site, start_job: StartJob, build: Build, tmp_path: Path
) -> None:
    """Its cable is pulled: neither side is told."""
    program = build("ends.c")
    job = start(start_job, namespaces, namespaces.shell(tmp_path), "--host-timeout", 12, "-n", 4, program)
    job.wait_for("waits", times=4)
    with cut(namespaces, 1):
        assert job.finish() == 2
        reason = "(Connection timed out|No route to host)"  # as far as the kernel knows it
        assert re.search(rf"^rankrun: host beta is lost \({reason}\), and the job with it$", job.stderr(), re.M)
        wait_until(lambda: not alive(program), "processes of the job are left")


def test_a_killed_launcher_takes_all_hosts_with_it(
    site: Site, start_job: StartJob, build: Build, tmp_path: Path
) -> None:
    program = build("ends.c")
    job = start(start_job, site, site.shell(tmp_path), "-n", 4, program)
    job.wait_for("waits", times=4)
    assert len(agents(program, job.pid)) == 2
    job.process.kill()
    wait_until(lambda: not alive(program), "processes of the job are left")


# ---- hosts that don't take part ----


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("exit 9", "host {}: the remote shell ({}) ended with status 9 before the job began there"),
        ("kill -9 $$", "host {}: the remote shell ({}) was ended by signal 9 (Killed) before the job began there"),
        ("exec sleep 1000", "host {} has not answered for 1.5 s (--host-timeout)"),
    ],
)
def test_a_host_that_can_not_be_had_is_named(
    shell: str, says: str, addresses: Site, build: Build, tmp_path: Path
) -> None:
    program = build("ends.c")
    script = addresses.shell(tmp_path, second=shell)
    limit = ("--host-timeout", 1.5) if "sleep" in shell else ()
    done = run_on(addresses, script, *limit, "-n", 4, program)
    assert done.returncode == 2 and done.stdout == ""
    assert f"rankrun: {says.format(LOCAL[1], script)}\n" in done.stderr, done.stderr
    wait_until(lambda: not alive(program), "processes of the job are left")


def test_a_remote_shell_that_is_not_there(addresses: Site, build: Build) -> None:
    done = run_on(addresses, Path("/no/shell"), "-n", 4, build("ends.c"))
    assert done.returncode == 2
    assert "the remote shell (/no/shell) ended with status 127 before the job began there\n" in done.stderr


def test_another_build_is_refused(addresses: Site, build: Build, tmp_path: Path) -> None:
    """The launcher has loaded it; then it is built anew."""
    program, other = build("ends.c"), tmp_path / "other"
    shutil.move(build("ends.c", "-DOTHER"), other)
    shutil.copy(other, tmp_path / "there")
    build("ends.c")
    script = addresses.shell(tmp_path, both=f"cp {other} {other}.$host; mv {other}.$host {program}")
    done = run_on(addresses, script, "-n", 4, program)
    assert done.returncode == 2
    said = f": {program} is not the same file at the same address as here, which ranks that move have to find\n"
    assert said in done.stderr and "rankrun: host 127.0.0." in done.stderr


def test_other_values_from_constructors_are_refused_where_they_would_be_lost(
    addresses: Site, build: Build, tmp_path: Path
) -> None:
    program = build("guest.c", "-DCONSTRUCTOR")
    words = ("-n", 2, program, "x", "y")
    shell = addresses.shell(tmp_path)
    whole = run_on(addresses, shell, *words)
    assert (whole.returncode, whole.stderr) == (0, "") and whole.stdout.count("constructor kept") == 2
    lean = run_on(addresses, shell, "--migrate", "lean", *words)
    assert lean.returncode == 2
    assert f"the constructors of {program} have left other values than here, so ranks move there" in lean.stderr


# ---- checkpoints ----


def test_a_checkpoint_of_two_hosts_goes_on_on_one_and_on_two(
    site: Site,
    start_job: StartJob,
    stepped: list[str],
    build: Build,
    tmp_path: Path,
) -> None:
    folder, go, program = tmp_path / "kept", tmp_path / "go", build("steps.c")
    shell = site.shell(tmp_path)
    words = ("-n", 4, "--checkpoint", folder, "--every", 0.1, program, STEPS, go)
    job = start(start_job, site, shell, *words)
    job.wait_for("half")
    wait_for_next(folder)
    os.killpg(job.pid, signal.SIGKILL)
    job.process.wait()
    wait_until(lambda: not alive(program), "processes of the job are left")
    go.touch()
    assert not list(folder.glob(".hosts*"))
    for where in ((), site.options(shell)):
        done = run("--restart", folder, *(where or ("--procs", 2)), before=site.home)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")) == stepped


def test_a_folder_that_a_host_does_not_share_is_refused(namespaces: Site, build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    hidden = f"nsenter -t $(cat {tmp_path}/pid) --mount mount -t tmpfs none {folder};"
    (tmp_path / "pid").write_text(str(namespaces.inside[1]))
    script = namespaces.shell(tmp_path, second=hidden)
    done = run_on(namespaces, script, "-n", 4, "--checkpoint", folder, build("ends.c"))
    assert done.returncode == 2
    assert f"rankrun on host beta: {folder} is not the folder that it is where the job was started: " in done.stderr
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--hosts", "a,,b"), "--hosts must be names with commas between them"),
        (("--hosts", "[::1]:0"), "--hosts must be names with commas between them"),
        (("--hosts", "[::1"), "--hosts must be names with commas between them"),
        (("--hosts", "[::1]2"), "--hosts must be names with commas between them"),
        (("--hosts", "[a]:2"), "--hosts must be names with commas between them"),
        (("--hosts", "[::1]:9,b", "--procs", "2"), "--procs 2 leaves host b without a process"),
        (("--hosts", "a:0"), "--hosts must be names with commas between them"),
        (("--hosts", "-oProxyCommand=x"), "--hosts must be names with commas between them"),
        (("--hosts", "a:9,b", "--procs", "2"), "--procs 2 leaves host b without a process"),
        (("--hosts", "a:3,b"), "--procs 4 is more than there are ranks (2)"),
        (("--remote-shell", "x"), "--remote-shell needs --hosts"),
        (("--host-timeout", "3"), "--host-timeout needs --hosts"),
    ],
)
def test_bad_calls(options: tuple[object, ...], says: str) -> None:
    words = [str(one) for one in (BIN / "rankrun", "-n", 2, *options, "/bin/true")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1
