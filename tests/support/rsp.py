"""A client of GDB's Remote Serial Protocol that sends what a test wants, and says what came back.

Takes the words of `inspector serve`, or where one listens. It knows the framing alone, and waits for replies as long as
the server lives and PATIENCE allows.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional
from xml.etree import ElementTree

from tests.support.running import built, hear_interrupts

PATIENCE = 60.0  # seconds
BASE = 5_000_000  # the pid of rank 0
FEATURES = "qSupported:multiprocess+;swbreak+;hwbreak+;qRelocInsn+;xmlRegisters=i386"
PRIVATE = b"\x03"


class Gone(Exception):  # noqa: N818 - what has happened
    """The server has closed the connection."""


class Client:
    """A connection; without `start` nothing has been sent yet."""

    def __init__(self, source: int, sink: int, process: Optional[subprocess.Popen[bytes]] = None) -> None:
        self._source, self._sink, self.process = source, sink, process
        self._pending = b""

    def start(self) -> None:
        """What GDB begins with."""
        self.send(FEATURES)
        assert "multiprocess+" in self.reply()
        self._write(b"+")
        assert self.ask("QStartNoAckMode") == "OK"
        self._write(b"+")

    def ask(self, content: str) -> str:
        """A packet's reply."""
        self.send(content)
        return self.reply()

    def send(self, content: str) -> None:
        data = content.encode("latin-1")
        self._write(b"$%s#%02x" % (data, sum(data) & 0xFF))

    def interrupt(self) -> None:
        self._write(PRIVATE)

    def write(self, data: bytes) -> None:
        """Any bytes, as they are."""
        self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._sink, data) :]
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Gone from error

    def reply(self) -> str:
        """The next packet's content, escapes undone."""
        while True:
            start = self._pending.find(b"$")
            end = self._pending.find(b"#", start) if start >= 0 else -1
            if end >= 0 and len(self._pending) >= end + 3:
                content, sent = self._pending[start + 1 : end], self._pending[end + 1 : end + 3]
                assert int(sent, 16) == sum(content) & 0xFF
                self._pending = self._pending[end + 3 :]
                return unescaped(content)
            self._fill()

    def _fill(self) -> None:
        deadline = time.monotonic() + PATIENCE
        if not select.select([self._source], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"the server does not answer; so far {self._pending!r}")
        try:
            data = os.read(self._source, 1 << 16)
        except ConnectionResetError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._pending += data

    def document(self, kind: str, annex: str = "") -> str:
        """A whole document of `qXfer`."""
        text = ""
        while True:
            part = self.ask(f"qXfer:{kind}:read:{annex}:{len(text):x},800")
            assert part[:1] in ("m", "l"), part
            text += part[1:]
            if part[0] == "l":
                return text

    def states(self) -> dict[int, str]:
        """By rank, what `info os processes` has of it."""
        rows = ElementTree.fromstring(self.document("osdata", "processes")).iter("item")
        cells = [{column.get("name"): column.text or "" for column in row} for row in rows]
        return {int(row["rank"]): row["state"] for row in cells}

    def attach(self, rank: int) -> str:
        return self.ask(f"vAttach;{BASE + rank:x}")

    def memory(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.ask(f"m{address:x},{size:x}"))

    def integer(self, address: int) -> int:
        return int.from_bytes(self.memory(address, 4), "little", signed=True)

    def close(self) -> None:
        for descriptor in {self._source, self._sink}:
            os.close(descriptor)
        self._source = self._sink = -1


def unescaped(content: bytes) -> str:
    first, *rest = content.split(b"}")
    return (first + b"".join(bytes((one[0] ^ 0x20,)) + one[1:] for one in rest)).decode("utf-8", "replace")


@contextmanager
def served(*words: object, inspector: Sequence[object] = ()) -> Iterator[Client]:
    """A server on a pipe, and its end: by itself, once the client is gone, without a traceback.

    `inspector` are the words that start another `inspector` than the one that was built.
    """
    process = subprocess.Popen(
        [*map(str, inspector or [built("inspector")]), "serve", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    client = Client(os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()), process)
    process.stdin.close()
    process.stdout.close()
    try:
        yield client
        if client._source >= 0:
            client.close()
        errors = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 0, errors
        assert "Traceback" not in errors, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()


@contextmanager
def listening(*words: object) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that listens, and where: what it prints first."""
    command = [str(built("inspector")), "serve", *map(str, words)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline().decode()
        assert line.startswith("serving at "), line + process.stderr.read().decode()
        yield line.split()[2].rstrip(","), process
    finally:
        process.terminate()
        process.wait()
        errors = process.stderr.read().decode()
        process.stdout.close()
        process.stderr.close()
    assert "Traceback" not in errors, errors


def connected(address: str) -> Client:
    """A connection to a server that listens."""
    if address.startswith("/"):
        line = socket.socket(socket.AF_UNIX)
        line.connect(address)
    else:
        host, _, port = address.partition(":")
        line = socket.create_connection((host, int(port)))
    descriptor = line.detach()
    return Client(descriptor, descriptor)


def is_stopped(pid: int) -> bool:
    """Whether a thread of the process is stopped, or traced by a process; one that ends meanwhile is neither."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            status = (task / "status").read_text()
            lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if lines["State"][0] in "tT" or lines["TracerPid"] != "0":
                return True
    return False
