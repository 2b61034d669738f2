"""GDB in the foreground of a terminal of its own, as for a user who types."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

PROMPT = rb"\(gdb\) $"
PATIENCE = 120  # seconds until GDB must have answered
POLL = "7"  # its number among x86-64's system calls
SETTINGS = ("debuginfod enabled off", "pagination off", "style enabled off", "confirm off", "breakpoint pending on")


class Terminal:
    """A GDB on a terminal, and all that it has written there."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid, self._descriptor = pid, descriptor
        self.written = b""

    def type(self, line: str) -> None:
        self.written = b""
        os.write(self._descriptor, line.encode())

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        """Read on until a pattern is in what was written since the last line was typed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            match = re.search(pattern, self.written)
            if match is not None:
                return match
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                pytest.fail(f"GDB did not write {pattern!r}: {self.written[-3000:]!r}")
            self.written += os.read(self._descriptor, 65536)

    def wait_for_idle(self) -> None:
        """Until GDB has done all that it has posted to itself, and sleeps in poll(2) of its event loop."""
        file = Path(f"/proc/{self._pid}/syscall")
        wait_until(lambda: file.read_text().split()[0] == POLL, "GDB does not become idle")

    def ask(self, command: str) -> str:
        """What GDB writes until its next prompt."""
        self.type(command + "\n")
        self.wait_for(PROMPT)
        return self.written.decode().partition("\n")[2]


@contextmanager
def terminal(gdb: Path, *words: object) -> Iterator[Terminal]:
    """A GDB that is started with these words, in whose terminal a typed Ctrl-C is a signal; it ends with the block."""
    command = [str(gdb), "-nx", "-q", *(word for setting in SETTINGS for word in ("-iex", f"set {setting}"))]
    command += map(str, words)
    with tempfile.TemporaryDirectory() as folder:  # one that is killed removes no files
        child, descriptor = pty.fork()
        if child == 0:
            os.environ.update(TERM="dumb", TMPDIR=folder)
            os.execv(command[0], command)
        try:
            yield Terminal(child, descriptor)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(descriptor)
