"""Who may take part in a job of several hosts: those whose standard input has the key, as numbers on the wire prove."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from tests.support.job_programs import Build, run_on
from tests.support.running import BIN, StartJob
from tests.support.sites import LOCAL, Site
from tests.support.waiting import wait_until

WRONG_KEY = """python3 -c '
import os, sys
first = os.read(0, 16)
while len(first) < 16:
    first += os.read(0, 16 - len(first))
sys.stdout.buffer.write(first[:15] + bytes([first[15] ^ 1]) + sys.stdin.buffer.read())
' | exec "$@"; exit $?"""


def test_a_host_with_another_key_is_refused(addresses: Site, build: Build, tmp_path: Path) -> None:
    script = addresses.shell(tmp_path, second=WRONG_KEY)
    done = run_on(addresses, script, "-n", 4, build("ends.c"))
    assert done.returncode == 2 and done.stdout == ""
    assert f"rankrun on host {LOCAL[1]}: the job's launcher does not accept this host's key\n" in done.stderr
    assert f"rankrun: host {LOCAL[1]}: the remote shell ({script}) ended with status 2" in done.stderr


# ---- strangers ----

MASK = (1 << 64) - 1


def siphash(key: bytes, text: bytes) -> int:
    """SipHash-2-4, written from its paper (Aumasson and Bernstein, 2012)."""
    first, second = struct.unpack("<QQ", key)
    v = [
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    ]

    def left(word: int, by: int) -> int:
        return (word << by | word >> (64 - by)) & MASK

    def mix(rounds: int) -> None:
        for _ in range(rounds):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = left(v[1], 13) ^ v[0]
            v[0] = left(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = left(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = left(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = left(v[1], 17) ^ v[2]
            v[2] = left(v[2], 32)

    whole = len(text) // 8 * 8
    last = int.from_bytes(text[whole:], "little") | (len(text) & 0xFF) << 56
    for word in (*(one for (one,) in struct.iter_unpack("<Q", text[:whole])), last):
        v[3] ^= word
        mix(2)
        v[0] ^= word
    v[2] ^= 0xFF
    mix(4)
    tag: int = v[0] ^ v[1] ^ v[2] ^ v[3]
    return tag


def test_the_tag_is_the_paper_s() -> None:
    assert siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


def call(port: int, key: bytes, visit: bytes) -> tuple[int, bytes, bytes]:
    """Calls as another host does: the number that was sent, what was proved, and the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as made:
        number = made.recv(8, socket.MSG_WAITALL)
        proved = number + b"own one " + visit + bytes(4)
        made.sendall(b"own one " + struct.pack("<Q", siphash(key, bytes(8) + proved)) + visit + bytes(4))
        answer = b""
        with suppress(ConnectionResetError):
            answer = made.recv(8, socket.MSG_WAITALL)
        return len(number), proved, answer


def test_a_stranger_learns_nothing_and_disturbs_nobody(
    addresses: Site, start_job: StartJob, build: Build, tmp_path: Path
) -> None:
    """While the second host's shell waits, others call the launcher: with a wrong key, and not to the end."""
    orders, go = tmp_path / "orders", tmp_path / "go"
    os.mkfifo(go)
    wait = f'head -c 64 >{orders}.part; mv {orders}.part {orders}; read -r line <{go}; cat {orders} - | exec "$@"; exit'
    shell = addresses.shell(tmp_path, second=wait)
    job = start_job(BIN / "rankrun", *addresses.options(shell), "-n", 4, build("ends.c"), "status")
    wait_until(orders.exists, "the second host was given no orders")
    head = orders.read_bytes()
    key, (port,) = head[8:24], struct.unpack_from("<I", head, 60)
    visit = struct.pack("<Iii", 1, 100, 0)  # for a process that there is not
    with socket.create_connection(("127.0.0.1", port), timeout=60) as silent:
        assert len(silent.recv(8, socket.MSG_WAITALL)) == 8
        assert call(port, bytes(16), visit)[2] == b""
        _, proved, answer = call(port, key, visit)
        assert answer == struct.pack("<Q", siphash(key, struct.pack("<Q", 1) + proved)), "who knows the key is answered"
        go.write_text("\n")
        assert job.finish() == 3, job.stderr()
    assert job.stderr() == ""
