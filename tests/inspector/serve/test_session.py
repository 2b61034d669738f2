"""Ranks as processes by raw packets: their memory, and a job that stands only while a debugger looks."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pieglobalsfind.jobs.members import members_of
from tests.support.gdb.places import RANKS, Places, hold, parse_owned
from tests.support.rsp import BASE, Client, Gone, connected, is_stopped, listening, served
from tests.support.running import StartJob, built
from tests.support.smpi.jobs import kernel_core
from tests.support.waiting import wait_until

RUNS = RANKS - 1
NOBODY = 65534


def check_memory(client: Client, places: Places, rank: int) -> None:
    """What the rank has printed of its variables is what the debugger reads."""
    for owned in places.owned.values():
        if owned.rank == rank and owned.name in ("shared_name", "file_static", "constant", "calls"):
            assert client.integer(owned.address) == owned.value, owned


def check_goes_on(pid: int) -> None:
    wait_until(lambda: not is_stopped(pid), f"process {pid} was left stopped")


def test_attach_on_demand(places: Places) -> None:
    with served(places.pid) as client:
        client.start()
        assert client.ask("?") == "W00"
        assert not is_stopped(places.pid)
        states = client.states()
        assert sorted(states) == list(range(RANKS))
        assert states[1] == "blocked in MPI_Recv from 2, tag 6" and states[RUNS].startswith("running on thread")
        assert not is_stopped(places.pid), "nothing is attached to yet"
        for rank in range(RANKS):
            assert client.attach(rank) == f"T05thread:p{BASE + rank:x}.{BASE + rank:x};"
            assert is_stopped(places.pid)
            check_memory(client, places, rank)
        threads = {element.get("name"): element.text for element in ElementTree.fromstring(client.document("threads"))}
        assert threads["rank 1"] == "blocked in MPI_Recv from 2, tag 6"
        for rank in range(RANKS):
            assert client.ask(f"D;{BASE + rank:x}") == "OK"
        check_goes_on(places.pid)


def test_one_rank_from_the_beginning(places: Places) -> None:
    with served(places.pid, "--rank", 1) as client:
        client.start()
        assert client.ask("?") == f"T05thread:p{BASE + 1:x}.{BASE + 1:x};"
        check_memory(client, places, 1)
        assert client.ask(f"Hgp{BASE:x}.{BASE:x}") == "E01", "no other rank is there"
    check_goes_on(places.pid)


def test_all_ranks_from_the_beginning(places: Places) -> None:
    with served(places.pid, "--all") as client:
        client.start()
        assert client.ask("?").startswith("T05")
        assert len(ElementTree.fromstring(client.document("threads"))) == RANKS
        for rank in reversed(range(RANKS)):
            assert client.ask(f"Hgp{BASE + rank:x}.{BASE + rank:x}") == "OK"
            check_memory(client, places, rank)
    check_goes_on(places.pid)


def test_a_core_file_stands(core: Path, places: Places) -> None:
    with served(core) as client:
        client.start()
        client.attach(2)
        check_memory(client, places, 2)
        client.send("vCont;c")
        line = client.reply()
        assert bytes.fromhex(line[1:]).decode() == "a still picture of the job: it can't go on\n"
        assert client.reply().startswith("T05")


def test_a_job_of_several_processes(start_job: StartJob, rankrun: Path, program: Path) -> None:
    """One connection has the ranks of all of them, by number, and holds all of them still."""
    job = start_job(rankrun, "-n", RANKS, "--procs", 2, program)
    hold(job)
    for rank in range(RANKS):  # the lines of another process may come later
        if (rank, "file_static") not in parse_owned(job.lines):
            job.wait_for(f"{rank} file_static")
    places = Places(job.pid, parse_owned(job.lines))
    processes = [job_member.pid for job_member in members_of(str(job.pid)).found]
    with served("--job", job.pid) as client:
        client.start()
        assert sorted(client.states()) == list(range(RANKS))
        for rank in range(RANKS):
            assert client.attach(rank).startswith("T05thread:")
            check_memory(client, places, rank)
        assert len(processes) == 2 and all(map(is_stopped, processes))
    for pid in processes:
        check_goes_on(pid)


def test_the_signal_of_a_core_file(places: Places, tmp_path: Path) -> None:
    """The rank that ran has it, in the protocol's numbers; the others stand."""
    with served(kernel_core(places.pid, tmp_path)) as client:
        client.start()
        assert client.attach(RUNS).startswith("T06thread:")
        assert client.attach(0).startswith("T05thread:")


def test_continue_and_interrupt(places: Places) -> None:
    with served(places.pid, "--rank", RUNS) as client:
        client.start()
        client.ask("?")
        before = stack_pointer(client)
        for _ in range(3):
            client.send("c")
            check_goes_on(places.pid)
            client.interrupt()
            assert client.reply() == f"T02thread:p{BASE + RUNS:x}.{BASE + RUNS:x};"
            assert is_stopped(places.pid)
            check_memory(client, places, RUNS)
            assert abs(stack_pointer(client) - before) < 1 << 20
    check_goes_on(places.pid)


def stack_pointer(client: Client) -> int:
    return int.from_bytes(bytes.fromhex(client.ask("p7")), "little")


def test_the_job_ends_while_it_runs(places: Places) -> None:
    with served(places.pid, "--rank", 0) as client:
        client.start()
        client.ask("?")
        client.send("c")
        check_goes_on(places.pid)
        subprocess.run(["kill", "-KILL", str(places.pid)], check=True)
        assert "has ended" in bytes.fromhex(client.reply()[1:]).decode()
        assert client.reply() == f"W00;process:{BASE:x}"
        assert client.ask("m1000,4") == "E01"


def test_what_can_not_be_attached_to(places: Places) -> None:
    with served(places.pid) as client:
        client.start()
        assert client.attach(RANKS).startswith("E."), "no such rank"
        assert client.ask("vAttach;1") == "E01", "no rank's pid"
        assert client.ask("g") == "E01"
    check_goes_on(places.pid)


def test_writes_are_refused(places: Places) -> None:
    address = places.owned[1, "shared_name"].address
    with served(places.pid, "--rank", 1) as client:
        client.start()
        client.ask("?")
        assert client.ask(f"M{address:x},4:00000000") == "E01"
        assert client.ask("P10=0000000000000000") == "E01"
        check_memory(client, places, 1)


def test_writes_where_they_are_allowed(places: Places) -> None:
    mine = places.owned[1, "shared_name"].address
    for rank, where, allowed in (
        (1, mine, True),
        (1, places.owned[0, "shared_name"].address, False),  # another rank's
        (1, places.owned[1, "move_on"].address, False),  # code
        (1, 0x1000, False),
        (RUNS, places.owned[RUNS, "shared_name"].address, False),  # it runs
    ):
        with served(places.pid, "--rank", rank, "--write") as client:
            client.start()
            client.ask("?")
            assert client.ask(f"M{where:x},4:2a000000") == ("OK" if allowed else "E01"), (rank, hex(where))
            assert client.integer(mine) == 42


def test_breakpoints_are_refused(places: Places) -> None:
    with served(places.pid, "--rank", 1) as client:
        client.start()
        client.ask("?")
        assert client.ask(f"Z0,{places.owned[1, 'move_on'].address:x},1") == "E01"


@pytest.mark.parametrize("way", ["port", "socket"])
def test_several_connections_share_the_job(way: str, places: Places, tmp_path: Path) -> None:
    """It stands as long as one of them looks."""
    where = ("--port", 0) if way == "port" else ("--socket", tmp_path / "socket")
    with listening(places.pid, *where) as (address, _):
        first, second = connected(address), connected(address)
        for client, rank in ((first, 0), (second, 1)):
            client.start()
            client.attach(rank)
            check_memory(client, places, rank)
        first.close()
        assert second.ask("?").startswith("T05")
        assert is_stopped(places.pid)
        second.close()
        check_goes_on(places.pid)
        third = connected(address)
        third.start()
        third.attach(2)
        check_memory(third, places, 2)
        third.close()


def test_a_socket_is_the_users_alone(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listening(places.pid, "--socket", path) as (address, _):
        assert path.stat().st_mode & 0o777 == 0o600 and address == str(path)
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
def test_a_port_refuses_other_users(places: Places) -> None:
    """By the kernel's table of connections; the same command of our own user is served."""
    with listening(places.pid, "--port", 0) as (address, _):
        host, _, port = address.partition(":")
        script = f"exec 3<>/dev/tcp/{host}/{port} && printf '$qAttached#8f' >&3 && head -c 6 <&3"
        found = {}
        for uid in (NOBODY, os.geteuid()):
            done = subprocess.run(["bash", "-c", script], user=uid, capture_output=True, timeout=60, cwd="/")
            found[uid] = done.stdout
        assert found == {NOBODY: b"", os.geteuid(): b"+$1#31"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_servers_end_lets_the_job_go_on(number: int, places: Places) -> None:
    with listening(places.pid, "--port", 0) as (address, process):
        client = connected(address)
        client.start()
        client.attach(1)
        assert is_stopped(places.pid)
        process.send_signal(number)
        process.wait()
        check_goes_on(places.pid)
        with pytest.raises(Gone):
            client.ask("?")
        client.close()


CONVERSATION = (
    "qSupported:multiprocess+;xmlRegisters=i386", "?", "qXfer:osdata:read:processes:0,800", f"vAttach;{BASE + 1:x}",
    f"Hgp{BASE + 1:x}.{BASE + 1:x}", "g", "qXfer:libraries-svr4:read::0,800", "qXfer:auxv:read::0,800", "vCont;c",
)  # fmt: skip


def test_a_client_that_vanishes_at_any_moment(places: Places) -> None:
    """After every packet, in the middle of one, and without having read a reply."""
    stream = b"".join(b"$%s#%02x" % (one.encode(), sum(one.encode()) & 0xFF) for one in CONVERSATION)
    ends = [at for at, byte in enumerate(stream) if byte == ord("#")]
    with listening(places.pid, "--port", 0) as (address, _):
        for end in (0, *ends, *(at + 3 for at in ends)):
            client = connected(address)
            client.write(stream[:end])
            if end % 2:
                client.close()
                continue
            with_reply = connected(address)  # whose answer shows that the server still serves
            with_reply.start()
            client.close()
            with_reply.close()
        last = connected(address)
        last.start()
        assert sorted(last.states()) == list(range(RANKS))
        last.close()
    check_goes_on(places.pid)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--rank", "99"], "no rank 99"),
        (["--rank", "x"], "--rank 'x' makes no sense"),
        (["--port", "70000"], "--port '70000' makes no sense"),
        (["--rank", "1", "--all"], "not allowed with"),
    ],
)
def test_wrong_calls(words: list[str], sentence: str, places: Places) -> None:
    command = [str(built("inspector")), "serve", str(places.pid), *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_process_without_ranks(start_job: StartJob) -> None:
    job = start_job("sleep", "1000")
    command = [str(built("inspector")), "serve", str(job.pid)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "has no virtual ranks" in done.stderr


def test_files_of_the_job_alone(places: Places, program: Path) -> None:
    """`--files`: the program can be read, and nothing that is not the job's; without it nothing can."""
    with served(places.pid, "--files") as client:
        client.start()
        for name in ("/etc/passwd", "/usr/lib/debug/.build-id/../../../../etc/passwd", "", "\0", "/proc/self/mem"):
            assert client.ask(f"vFile:open:{name.encode().hex()},0,0") == "F-1,2", name
        path = str(program).encode().hex()
        assert client.ask(f"vFile:open:{path},1,0") == "F-1,d", "to write"
        opened = client.ask(f"vFile:open:{path},0,0")
        assert opened.startswith("F") and not opened.startswith("F-")
        client.send(f"vFile:pread:{opened[1:]},40,0")
        assert client.reply().startswith("F40;\x7fELF")
        assert client.ask(f"vFile:pread:{opened[1:]},40,ffffffffffffffff").startswith("F-1")
        assert client.ask(f"vFile:close:{opened[1:]}") == "F0"
        assert client.ask(f"vFile:pread:{opened[1:]},40,0") == "F-1,9"
    with served(places.pid) as client:
        client.start()
        assert client.ask(f"vFile:open:{path},0,0") == ""
    check_goes_on(places.pid)
