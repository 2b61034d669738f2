"""What answers cost: `inspector` on 62 C++ globals, most of them containers, and two deadlocked ranks.

The program is that of tests/inspector/commands/test_answers.py, which says whether the answers are right.
"""

from __future__ import annotations

import os
import pty
import re
import resource
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.bench.gdb_ranks import compile_file, job, rankrun
from tests.bench.result import Measurement, Result
from tests.support.running import BIN, ROOT

SOURCE = ROOT / "tests" / "inspector" / "sources" / "answers.cpp"
RANKS = (64, 1_000)
TURNS = 3
FIRST_SCREEN = 1.0  # seconds
LARGEST_PAGE = 1e6  # bytes
STOOD_STILL = re.compile(r"stood still for ([\d.]+) ms")
TIMEOUT = 300


class Cost(NamedTuple):
    """Processor time, of user and kernel, and for how long the job stood still; seconds."""

    processor: float
    stopped: float


def run() -> Result:
    """Measure every command on both numbers of ranks."""
    measured: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        program, page = Path(folder) / "answers", Path(folder) / "report.html"
        compile_file(SOURCE, [str(BIN / "rankcxx"), "-std=c++17"], program)
        for ranks in RANKS:
            with job([*rankrun(ranks), str(program)]) as pid:
                told = f"{ranks:,} ranks"
                values = cheapest("globals", pid)
                measured += [
                    Measurement(f"`globals`, {told}, processor time", values.processor, "s"),
                    Measurement(f"`globals`, {told}, the job stands still", 1000 * values.stopped, "ms"),
                    Measurement(f"`waits`, {told}, processor time", cheapest("waits", pid).processor, "s"),
                    Measurement(
                        f"`report --html`, {told}, processor time",
                        cheapest("report", pid, "--html", str(page)).processor,
                        "s",
                    ),
                    Measurement(f"its page, {told}", page.stat().st_size / 1e6, "MB", LARGEST_PAGE / 1e6),
                ]
                if ranks == RANKS[0]:
                    used, passed = first_screen(pid)
                    measured += [
                        Measurement(f"`watch`, {told}, processor time until its first screen", used, "s", FIRST_SCREEN),
                        Measurement("the same by the clock", passed, "s"),
                    ]
    return Result(
        "Answers",
        "A C++ program of 62 globals, most of them containers and strings of up to 20 elements; ranks 13 and 14 wait "
        f"for one another and all others for them. The best of {TURNS}. A screen is there when its verdict is; what "
        "else runs on the machine lengthens what is by the clock alone.",
        tuple(measured),
    )


def cheapest(command: str, pid: int, *words: str) -> Cost:
    """The least processor time, and the shortest stop, of a few calls."""
    costs = [cost(command, pid, *words) for _ in range(TURNS)]
    return Cost(min(one.processor for one in costs), min(one.stopped for one in costs))


def cost(command: str, pid: int, *words: str) -> Cost:
    """What one call of a command costs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [str(BIN / "inspector"), command, str(pid), *words], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    match = STOOD_STILL.search(done.stdout)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(used, float(match[1]) / 1000 if match else 0.0)


def first_screen(pid: int) -> tuple[float, float]:
    """The least time from the start of `watch` until a terminal has its verdict: of the processor, and by the clock."""
    used, passed = zip(*(until_verdict(pid) for _ in range(TURNS)))
    return min(used), min(passed)


def until_verdict(pid: int) -> tuple[float, float]:
    """Seconds of the processor and by the clock, where what else runs on the machine counts, too."""
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
        os.execv(BIN / "inspector", [str(BIN / "inspector"), "watch", str(pid)])
    shown = b""
    try:
        while b"wait for one another" not in shown:
            if not select.select([terminal], [], [], TIMEOUT)[0]:
                raise RuntimeError("watch shows no verdict")
            shown += os.read(terminal, 1 << 16)
        passed, used = time.monotonic() - began, processor_seconds(child)
        os.write(terminal, b"q")
        while select.select([terminal], [], [], TIMEOUT)[0] and os.read(terminal, 1 << 16):
            pass
    except OSError:  # it has ended
        pass
    finally:
        os.waitpid(child, 0)
        os.close(terminal)
    return used, passed


def processor_seconds(pid: int) -> float:
    """What a process has used, user and kernel (proc(5), /proc/PID/stat)."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
