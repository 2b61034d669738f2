"""Jobs of several processes: the same messages as in one, ranks that move, and ends that all processes hear of.

The oracle of what programs print is Debian's MPICH, where no rank ever moves.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from pathlib import Path

import pytest

from tests.support.job_programs import Build, run
from tests.support.running import BIN, StartJob
from tests.support.sites import alive
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--pes", 2),
        ("--migrate", "lean"),
        ("--migrate", "lean", "--rewrite", "exact"),
        ("--migrate", "lean", "--share-code"),
    ],
    ids=lambda options: " ".join(map(str, options)) or "whole",
)
def test_ranks_that_move_print_what_they_print_at_home(
    options: tuple[object, ...], wandered: list[str], build: Build, tmp_path: Path
) -> None:
    log = tmp_path / "moves"
    done = run("-n", 6, "--procs", 3, *options, "--migration-log", log, build("wander.c"))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == wandered
    moves = [json.loads(line) for line in log.read_text().splitlines()]
    # Each rank moves twice a round but for exchanges that lead it back to where it is.
    assert {move["rank"] for move in moves} == set(range(6)) and len(moves) >= 6 * 6
    for rank in range(6):
        own = sorted((move for move in moves if move["rank"] == rank), key=lambda one: int(one["moves"]))
        assert [one["moves"] for one in own] == list(range(1, len(own) + 1))
        assert all(before["to"] == after["from"] for before, after in zip(own, own[1:]))


def test_a_message_is_never_sent_after_a_rank_that_is_back(build: Build) -> None:
    done = run("-n", 4, "--procs", 2, "--migrate", "lean", build("returns.c"), 80, 4 << 20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


def test_a_rank_has_its_errno_on_every_kernel_thread(build: Build) -> None:
    done = run("-n", 8, "--procs", 2, "--pes", 2, "--migrate", "lean", build("errors.c"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 lost\n", "")


def test_load_is_evened_out(build: Build) -> None:
    done = run("-n", 6, "--procs", 3, build("uneven.c"))
    assert done.returncode == 0, done.stderr
    ranks = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert sorted(rank for rank, before, _ in ranks if before == 0) == [0, 1]
    assert len({after for _, before, after in ranks if before == 0}) == 2, "the two that work are apart"


def test_the_status_is_the_largest_of_all_ranks(build: Build) -> None:
    assert run("-n", 6, "--procs", 3, build("ends.c"), "status").returncode == 5


def test_a_rank_with_an_open_file_stays(build: Build) -> None:
    done = run("-n", 4, "--procs", 2, build("ends.c"), "file")
    assert done.stdout.splitlines() == ["with a file: refused", "without: moved"] and done.returncode == 0


def service() -> str:
    """As this machine's database of services has it, if there is one."""
    try:
        socket.getservbyname("domain", "udp")
    except OSError:
        return "no service"
    return "domain"


KEPT = {
    "environment": "set", "putenv": "put", "zone": "23 CET", "locale": "one", "users": "root",
    "hosts": f"16 {service()}",
    "errors": "Unknown error 9999", "threads": "a value", "semaphores": "a semaphore", "setvbuf": "buffered",
    "freopen": "opened", "sync_with_stdio": "apart",
}  # fmt: skip


def test_what_libc_keeps_stays_for_the_others_and_what_it_gives_goes_along(build: Build) -> None:
    program = build("kept.cpp", compiler=str(BIN / "rankcxx"))
    for kind, value in KEPT.items():
        done = run("-n", 8, "--procs", 2, "--pes", 2, program, kind)
        assert (done.returncode, done.stderr) == (0, f"{value}: {value}\n"), kind
    done = run("-n", 8, "--procs", 2, "--pes", 2, program, "own")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a copy, number 7, a line, 1\n", "")


def test_a_rank_with_an_open_descriptor_stays(build: Build) -> None:
    done = run("-n", 4, "--procs", 2, build("descriptors.c"))
    ways = ("pipe", "fcntl", "dup2", "open", "socket", "eventfd", "opendir")
    assert done.stdout.splitlines() == [f"{way}: refused, then moved" for way in ways]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_deadlock_is_seen_across_processes(build: Build) -> None:
    done = run("-n", 4, "--procs", 2, "--exit-on-deadlock", build("ends.c"))
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "rankrun: deadlock: no rank can continue",
        *(f"  rank {rank}: MPI_Recv, peer {(rank + 1) % 4}, tag 5" for rank in range(4)),
    ]


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("signal", 128 + signal.SIGSEGV, "was ended by signal 11"),
        ("abort", 7, "rank 3: MPI_Abort: the program ends itself with code 7"),
        ("nowhere", 15, "there is no process 9: the job has 2"),
    ],
)
def test_one_rank_ends_the_whole_job(how: str, status: int, says: str, build: Build) -> None:
    done = run("-n", 4, "--procs", 2, build("ends.c"), how)
    assert done.returncode == status and says in done.stderr and len(done.stderr.splitlines()) == 1


def ends(process: int) -> bool:
    """Whether the process behind a pidfd ends within a minute; closes it."""
    poll = select.poll()
    poll.register(process)
    found = bool(poll.poll(60000))
    os.close(process)
    return found


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# System calls in which a thread stays until something happens, by number (x86-64): poll, futex, epoll_wait and
# epoll_pwait; and the argument that says how long, with its value for ever.
FOR_EVER = {7: (2, 0xFFFFFFFF), 202: (3, 0), 232: (3, 0xFFFFFFFF), 281: (3, 0xFFFFFFFF)}


def waits_for_ever(thread: Path) -> bool:
    """Not if it looks again from time to time."""
    words = (thread / "syscall").read_text().split()
    if not words[0].isdecimal() or int(words[0]) not in FOR_EVER:
        return False
    argument, value = FOR_EVER[int(words[0])]
    return int(words[1 + argument], 16) == value


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls are those of x86-64")
def test_a_job_that_waits_takes_no_time_at_all(start_job: StartJob, build: Build, rankrun: Path) -> None:
    """Nor does its launcher or a thread of theirs look whether something has come."""
    program = build("ends.c")
    job = start_job(rankrun, "-n", 4, "--pes", 2, "--procs", 2, program)
    job.wait_for("waits", times=4)

    def busy() -> list[str]:
        threads = [path for pid in alive(program) for path in Path(f"/proc/{pid}/task").iterdir()]
        assert len(threads) > 6
        return [f"{thread}: {(thread / 'syscall').read_text()}" for thread in threads if not waits_for_ever(thread)]

    wait_until(lambda: not busy(), lambda: "\n".join(busy()))


def test_a_killed_process_ends_the_job_with_a_sentence(start_job: StartJob, build: Build, rankrun: Path) -> None:
    job = start_job(rankrun, "-n", 4, "--procs", 2, build("ends.c"))
    job.wait_for("waits", times=4)
    first, second = children(job.pid)
    other = os.pidfd_open(first)
    os.kill(second, signal.SIGKILL)
    assert job.finish() == 128 + signal.SIGKILL
    assert f"process 1 of the job (pid {second}) was ended by signal 9" in job.stderr()
    assert ends(other)


def test_a_killed_launcher_takes_all_with_it(start_job: StartJob, build: Build, rankrun: Path) -> None:
    job = start_job(rankrun, "-n", 4, "--procs", 2, build("ends.c"))
    job.wait_for("waits", times=4)
    watched = [os.pidfd_open(pid) for pid in children(job.pid)]
    job.process.kill()
    assert all(ends(one) for one in watched)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-n", 2, "--procs", 3), "--procs 3 is more than there are ranks (2)"),
        (("-n", 2, "--procs", 2, "--method", "tpsl"), "method tpsl makes processes of its own"),
        (("-n", 2, "--checkpoint", "x", "--method", "pip"), "method pip can't be checkpointed"),
        (("-n", 2, "--every", "3"), "--every needs --checkpoint"),
        (("-n", 2, "--migrate", "fat"), "--migrate must be whole or lean"),
        (("-n", 2, "--migration-log", "x"), "--migration-log needs --procs"),
    ],
)
def test_bad_calls(options: tuple[object, ...], says: str, build: Build) -> None:
    done = run(*options, "/bin/true")
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1
