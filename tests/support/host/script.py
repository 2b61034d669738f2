"""Runs a debugger on a script and brings back what the script told by a file. Never leaves a process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 120  # seconds


@dataclass(frozen=True)
class Told:
    """What a script told, and all that the debugger printed."""

    facts: dict[str, Any]
    output: str

    def __getitem__(self, name: str) -> Any:
        assert name in self.facts, f"the script did not come to {name!r}:\n{self.output}"
        return self.facts[name]


def told_by(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: int = TIMEOUT) -> Told:
    """Run a debugger in a folder until it ends; its script finds in RANKLENS_TOLD which file to write.

    After `seconds` the debugger is killed, and `subprocess.TimeoutExpired` raised.
    """
    path = folder / "told.json"
    path.unlink(missing_ok=True)
    output = _printed(command, folder, {"RANKLENS_TOLD": str(path), "LC_ALL": "C.UTF-8", **environment}, seconds)
    return Told(json.loads(path.read_text()) if path.exists() else {}, output)


def _printed(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: int) -> str:
    log = folder / "debugger.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        finally:
            if process.poll() is None:
                end_with_what_it_launched(process)
    return log.read_text(errors="replace")


def end_with_what_it_launched(debugger: subprocess.Popen[Any]) -> None:
    """Kill a debugger, and the process that it launched: GDB gives it a process group of its own.

    What it only attached to is not its child, and is left alone.
    """
    children = Path(f"/proc/{debugger.pid}/task/{debugger.pid}/children").read_text().split()
    groups = {os.getpgid(int(child)) for child in children}
    os.killpg(debugger.pid, signal.SIGKILL)
    debugger.wait()
    for group in groups - {debugger.pid}:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
