"""A debugger's stub that has attached to a process, and waits for a debugger at a port of this host.

GDB can start its stub as `target remote | gdbserver`, too. Then it asks the kernel for errors before each byte that it
reads (GDB 13), which makes a start three times as dear: it reads the libraries through the stub.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.debuggers import find_lldb


@contextmanager
def stub(kind: str, pid: int) -> Iterator[str]:
    """A stub that has attached to a process; the port on which it waits."""
    path = shutil.which(kind) if kind == "gdbserver" else str(find_lldb(kind))
    if path is None:
        pytest.fail(f"{kind} is missing: run `make setup`")
    reading, writing = os.pipe()
    if kind == "gdbserver":
        command, error = [path, "--once", "--attach", "localhost:0", str(pid)], writing
    else:
        command = [path, "gdbserver", "--attach", str(pid), "--pipe", str(writing), "localhost:0"]
        error = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=error, stderr=error, pass_fds=[writing])
    os.close(writing)
    try:
        with os.fdopen(reading, errors="replace") as said:
            yield port_in(said) if kind == "gdbserver" else said.read(16).strip("\0\n ")
    finally:
        process.kill()
        process.wait()


def port_in(said: Iterator[str]) -> str:
    for line in said:
        match = re.search(r"Listening on port (\d+)", line)
        if match:
            return match.group(1)
    pytest.fail("gdbserver does not listen")
