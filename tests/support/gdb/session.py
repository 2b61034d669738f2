"""Runs a real GDB on a script, and brings back what the script found by a file.

Takes GDB's path, a Python script, and what to debug. The script has `ask(command)` (GDB's answer, or "error: ..."),
`value(expression)` (an int), `tell(name, anything that JSON can hold)`. Never judges.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.host.script import Told, told_by
from tests.support.running import ROOT

EXTENSION = ROOT / "gdbext" / "rank.py"

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


# mallopt(3): so GDB fails where it uses symbols that are gone, which by chance are still whole otherwise
FREED_IS_OVERWRITTEN = {"MALLOC_PERTURB_": "165"}
PLAIN_PROGRAM = ("-iex", "unset environment MALLOC_PERTURB_")


@dataclass(frozen=True)
class Session:
    """A GDB, and the folder for the files of its runs."""

    gdb: Path
    folder: Path

    def run(self, script: str, *arguments: object, source: bool = True) -> Told:
        """Run a script in a GDB that is started with `arguments`; `source`: with the extension."""
        load = f"gdb.execute('source {EXTENSION}')\n" if source else ""
        file = self.folder / "script.py"
        file.write_text(PRELUDE + load + textwrap.dedent(script))
        before, after = self._split(arguments)
        command = [str(self.gdb), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", *PLAIN_PROGRAM, *before]
        return told_by([*command, "-x", str(file), *after], self.folder, FREED_IS_OVERWRITTEN)

    def attach(self, script: str, pid: int) -> Told:
        return self.run(script, "-p", pid)

    def _split(self, arguments: Sequence[object]) -> tuple[list[str], list[str]]:
        words = [str(word) for word in arguments]
        at = words.index("--args") if "--args" in words else len(words)
        return words[:at], words[at:]
