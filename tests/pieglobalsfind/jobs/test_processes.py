"""Processes as /proc tells them, while they change."""

from __future__ import annotations

import subprocess
import sys

from pieglobalsfind.jobs.processes import listens

LISTENS = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    for file in [open("/dev/null") for _ in range(50)]:
        file.close()
"""


def test_a_listener_is_told_whatever_else_it_closes_meanwhile() -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            assert all(listens(process.pid, port) for _ in range(50))
            assert not listens(process.pid, port ^ 1)
        finally:
            process.kill()
