"""Runs a real GDB on a script, and brings back what the script found by a file.

Takes GDB's path, a Python script, and what to debug. The script has `ask(command)` (GDB's answer, or "error: ..."),
`value(expression)` (an int), `tell(name, anything that JSON can hold)`. Never judges, never leaves a process behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

EXTENSION = ROOT / "gdbext" / "rank.py"
TIMEOUT = 120  # seconds

PRELUDE = """
import json, os, sys
import gdb

told = {}

def tell(name, what):
    told[name] = what
    with open(os.environ["RANKLENS_TOLD"] + ".part", "w") as file:
        json.dump(told, file)
    os.replace(os.environ["RANKLENS_TOLD"] + ".part", os.environ["RANKLENS_TOLD"])

def ask(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as error:
        return "error: " + str(error)

def value(expression):
    return int(gdb.parse_and_eval(expression))

def functions():
    frame, found = gdb.newest_frame(), []
    while frame is not None and frame.is_valid():
        found.append(frame.name())
        frame = frame.older()
    return found

for setting in ("pagination off", "confirm off", "width 0", "height 0", "breakpoint pending on", "style enabled off",
                "startup-with-shell off", "python print-stack full"):
    gdb.execute("set " + setting)
"""


@dataclass(frozen=True)
class Told:
    """What a script told, and all that GDB printed."""

    facts: dict[str, Any]
    output: str

    def __getitem__(self, name: str) -> Any:
        assert name in self.facts, f"the script did not come to {name!r}:\n{self.output}"
        return self.facts[name]


@dataclass(frozen=True)
class Session:
    """A GDB, and the folder for the files of its runs."""

    gdb: Path
    folder: Path

    def run(self, script: str, *arguments: object, source: bool = True) -> Told:
        """Run a script in a GDB that is started with `arguments`; `source`: with the extension."""
        load = f"gdb.execute('source {EXTENSION}')\n" if source else ""
        file, told = self.folder / "script.py", self.folder / "told.json"
        file.write_text(PRELUDE + load + textwrap.dedent(script))
        told.unlink(missing_ok=True)
        before, after = self._split(arguments)
        command = [str(self.gdb), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", *before]
        output = self._finish([*command, "-x", str(file), *after], {"RANKLENS_TOLD": str(told)})
        return Told(json.loads(told.read_text()) if told.exists() else {}, output)

    def attach(self, script: str, pid: int) -> Told:
        return self.run(script, "-p", pid)

    def _split(self, arguments: Sequence[object]) -> tuple[list[str], list[str]]:
        words = [str(word) for word in arguments]
        at = words.index("--args") if "--args" in words else len(words)
        return words[:at], words[at:]

    def _finish(self, command: Sequence[str], extra: dict[str, str]) -> str:
        log = self.folder / "gdb.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **extra, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(TIMEOUT)
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
