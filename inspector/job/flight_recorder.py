"""`inspector stacks --every`: a flight recorder, so that the last stacks before a hang or a crash are on disk.

Takes a way of reading a job's stacks; keeps the newest files of a folder, each written in one step, and tells what a
reading costs. It ends when the job does.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.shell.atomic_file import write_whole

PERIOD = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|min|)")
SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 1.0}
ENDING = 5.0  # seconds that the end of a process may take
SHORTEST, LONGEST = 0.01, 600_000.0  # seconds
BOUNDS = "10ms to 10000min"


def seconds_of(text: str, option: str) -> float:
    """`10s`, `500ms`, `2min`, `10`: seconds; raises `UsageError`, which names the option that it is the value of."""
    match = PERIOD.fullmatch(text)
    seconds = float(match.group(1)) * SECONDS[match.group(2)] if match else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError(f"{option} takes a time of {BOUNDS}, and not {text!r}", f"for instance {option} 2s")
    return seconds


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended (proc(5), the state in /proc/PID/stat)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def is_ending(pid: int) -> bool:
    """Whether a process has ended, or does so now: its memory goes before its state tells."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):  # it is gone, or Linux is older than 5.3
        return not is_running(pid)
    try:
        return bool(select.select([descriptor], [], [], ENDING)[0])
    finally:
        os.close(descriptor)


def record(read: Callable[[], dict[str, object]], pid: int, every: float, keep: int, folder: Path) -> int:
    """Write what `read` gives into `folder` until process `pid` ends; returns how many files were written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} can't be made, {error.strerror}", "name another folder by -o") from error
    written = 0
    while True:
        start = time.monotonic()
        try:
            content = read()
        except RanklensError:
            if written and is_ending(pid):
                return written
            raise
        written += 1
        place = folder / f"stacks-{time.strftime('%Y%m%dT%H%M%S')}-{written:06}.json"
        write_whole(place, json.dumps(content), "name another folder by -o")
        for old in sorted(folder.glob("stacks-*.json"))[:-keep]:
            old.unlink(missing_ok=True)
        cost = time.monotonic() - start
        print(f"{written} written, {1000 * cost:.0f} ms each {every:g} s ({100 * cost / every:.1f} %)", file=sys.stderr)
        time.sleep(max(every - cost, 0.0))
