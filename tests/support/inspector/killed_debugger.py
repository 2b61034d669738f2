"""GDB that SIGKILL ends while it looks at ranks: the job must be neither traced nor stopped, and run on.

It has no breakpoints in the job: every debugger that is killed with breakpoints inserted leaves them there.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.support.running import ROOT

DEBUGGER_KILLED = "debugger killed"
GDB = os.environ.get("RANKLENS_GDB", "gdb")
COMMANDS = (
    "rank list",
    "rank apply all bt",
    "rank apply all print mine",
    "rank 1\nbt\nprint mine\nrank 3\nup\ninfo locals",
    "rank tree",
)
COUNTER = """
import os, signal, sys
calls, moment = 0, int(os.environ["MOMENT"])
def on_call(frame, event, argument):
    global calls
    calls += 1
    if calls == moment + 1:
        os.kill(os.getpid(), signal.SIGKILL)
sys.settrace(on_call)
"""
CALLS = re.compile(r"^calls: (\d+)$", re.MULTILINE)


class KilledDebugger:
    """Runs GDB on a job; `folder` is for its scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, pid: int, command: str, moment: int) -> tuple[int, str, str, int]:
        """End GDB as it makes that call of a Python function (-1: never): status, output, errors, number of calls."""
        counter, script = self.folder / "counter.py", self.folder / "looks.gdb"
        counter.write_text(COUNTER)
        script.write_text(f"source {ROOT / 'gdbext' / 'rank.py'}\n{command}\npython print('calls:', calls)\n")
        words = [GDB, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", f"source {counter}"]
        environment = {**os.environ, "MOMENT": str(moment), "XDG_CACHE_HOME": str(self.folder / "cache")}
        done = subprocess.run(
            [*words, "-p", str(pid), "-x", str(script)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        calls = CALLS.search(done.stdout)
        return done.returncode, done.stdout, done.stderr, int(calls[1]) if calls else 0
