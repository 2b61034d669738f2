"""Speaks the Debug Adapter Protocol to a real lldb-dap, or GDB, over its pipes.

Takes the adapter's path and words; gives the bodies of its responses and events. A response that reports a failure
fails the test unless it is asked for. Specification: microsoft.github.io/debug-adapter-protocol.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

TIMEOUT = 60.0  # seconds that an answer may take


class Adapter:
    """One adapter; use as a context."""

    def __init__(self, path: Path, folder: Path, *words: str) -> None:
        self._log = (folder / "dap.log").open("wb")
        self._process = subprocess.Popen(
            [str(path), *words],
            cwd=folder,
            env={**os.environ, "RANKLENS_TRACEBACK": "1", "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._number = 0
        self._pending = b""
        self.events: list[dict[str, Any]] = []
        self.output = ""
        self._responses: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request without waiting for the answer; returns its number."""
        self._number += 1
        message = {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self._process.stdin.flush()
        return self._number

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer to a request."""
        return self.answer(self.send(command, **arguments))

    def initialize(self) -> None:
        """Begin as Visual Studio Code does with lldb-dap, which from LLDB 21 on insists on a format of paths."""
        client = {"clientID": "test", "adapterID": "lldb-dap", "pathFormat": "path"}
        self.ask("initialize", **client, linesStartAt1=True, columnsStartAt1=True)

    def response(self, number: int) -> dict[str, Any]:
        """The whole answer to a request, also if it failed."""
        while number not in self._responses:
            self._read()
        return self._responses.pop(number)

    def answer(self, number: int) -> dict[str, Any]:
        message = self.response(number)
        assert message["success"], f"{message}\n{self.output}"
        body = message.get("body") or {}
        assert isinstance(body, dict)
        return body

    def event(self, name: str) -> dict[str, Any]:
        """The body of the next event of a kind."""
        while True:
            for index, one in enumerate(self.events):
                if one["event"] == name:
                    body = self.events.pop(index).get("body") or {}
                    assert isinstance(body, dict)
                    return body
            self._read()

    def _read(self) -> None:
        header = self._take_until(b"\r\n\r\n")
        size = int(header.partition(b"Content-Length:")[2].split()[0])
        while len(self._pending) < size:
            self._fill()
        content, self._pending = self._pending[:size], self._pending[size:]
        message = json.loads(content)
        assert isinstance(message, dict)
        if message["type"] == "event":
            if message["event"] == "output":
                self.output += message["body"].get("output", "")
            self.events.append(message)
        elif message["type"] == "response":
            self._responses[message["request_seq"]] = message

    def _take_until(self, end: bytes) -> bytes:
        while end not in self._pending:
            self._fill()
        found, _, self._pending = self._pending.partition(end)
        return found

    def _fill(self) -> None:
        assert self._process.stdout is not None
        deadline = time.monotonic() + TIMEOUT
        descriptor = self._process.stdout.fileno()
        ready = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
        chunk = os.read(descriptor, 65536) if ready else b""
        assert chunk, f"lldb-dap says no more; so far:\n{self.output}\n{self._responses}"
        self._pending += chunk
