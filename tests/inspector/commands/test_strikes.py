"""Wherever a signal strikes a command, it ends with the signal's status, says nothing and leaves nothing behind.

The moments are spread over the whole run, libraries' code included, some by chance; a test that fails names its own.
RANKLENS_STRIKES has more of them: RANKLENS_STRIKES=500 .venv/bin/python -m pytest -n 2
tests/inspector/commands/test_strikes.py
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import Job, built, hear_interrupts

STRIKES = int(os.environ.get("RANKLENS_STRIKES", "4"))  # for each command
MOST_STEPS = 60  # bytecodes behind a call
STRIKER = Path(__file__).parents[2] / "support" / "inspector" / "interrupt_at.py"
WAYS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

# Words of commands; OUT is a folder, KEPT one with files that were made before, PID the job's, ADDRESS one of its own
COMMANDS = {
    "snapshot": "inspector snapshot PID -o OUT/file",
    "report": "inspector report PID --html OUT/file",
    "report of a snapshot": "inspector report KEPT/snapshot --json",
    "globals": "inspector globals PID",
    "pointers": "inspector pointers PID",
    "stacks": "inspector stacks PID --freeze --json",
    "recorder": "inspector stacks PID --every 10ms --keep 2 -o OUT",
    "events": "inspector events PID --every 10ms",
    "merge": "inspector merge KEPT/report KEPT/report",
    "perfmap": "inspector perfmap PID -o OUT/file",
    "audit": "inspector audit PROGRAM",
    "pieglobalsfind": "pieglobalsfind --pid PID ADDRESS",
}
# Those that have no end of their own: others that do as much, to tell how long they are
AS_LONG = {"recorder": "inspector stacks PID", "events": "inspector events PID --no-follow"}
SAID = re.compile(
    r"([0-9]+ written, [0-9]+ ms each 0\.01 s \([0-9.]+ %\)\n)*|inspector: process [0-9]+ stood still for [0-9]+ ms\n"
)


@dataclass(frozen=True)
class Struck:
    """How a command has ended."""

    when: str
    words: list[str]
    status: int
    said: str
    complained: str
    report: str


@dataclass(frozen=True)
class Place:
    """A job, and folders for what the commands write."""

    job: Job
    folder: Path
    address: str

    def words(self, command: str) -> list[str]:
        values = {
            "PID": str(self.job.pid),
            "ADDRESS": self.address,
            "PROGRAM": str(next(self.folder.glob("*.so"))),
        }
        return [re.sub("^(OUT|KEPT)", rf"{self.folder}/\1", values.get(one, one)) for one in command.split()]

    def strike(self, command: str, when: str, way: int, terminal: bool = False) -> Struck:
        out, temporary = self.folder / "OUT", self.folder / "temporary"
        for path in (out, temporary):
            path.mkdir(exist_ok=True)
        report = self.folder / "struck"
        words = [sys.executable, str(STRIKER), str(report), when, str(int(way)), *self.words(command)]
        environment = os.environ | {"TMPDIR": str(temporary), "TERM": "xterm-256color"}
        done = in_terminal(words, environment) if terminal else in_pipes(words, environment)
        return Struck(when, words, *done, report.read_text())

    def left(self) -> list[str]:
        """Files that nobody has asked for, or that are not whole; those that were asked for are removed."""
        found = [f"temporary {path.name}" for path in (self.folder / "temporary").iterdir()]
        found += [f"cache {path.name}" for path in (self.folder / "cache").rglob("partial-*")]
        for one in (self.folder / "OUT").iterdir():
            if not is_whole(one):
                found.append(f"OUT {one.name}")
            one.unlink()
        status = Path(f"/proc/{self.job.pid}/status").read_text()
        return found + re.findall("State:\tt.*|TracerPid:\t[1-9].*", status)


def in_pipes(words: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    """Status, standard output and standard error."""
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        preexec_fn=hear_interrupts,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def in_terminal(words: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    """Status, all that was written, and what is another setting of the terminal than before."""
    screen, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
    before = termios.tcgetattr(own)

    def begin() -> None:
        hear_interrupts()
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(words, stdin=own, stdout=own, stderr=own, env=environment, preexec_fn=begin)
    written, deadline = b"", time.monotonic() + 60
    try:
        while process.poll() is None or select.select([screen], [], [], 0)[0]:
            if select.select([screen], [], [], 0.01)[0]:
                written += os.read(screen, 65536)
            assert time.monotonic() < deadline, written
    finally:
        process.kill()
        process.wait()
        settings = termios.tcgetattr(own)
        os.close(screen)
        os.close(own)
    changed = "" if settings == before else f"{before} {settings}"
    return process.returncode, written.decode(errors="replace"), changed


def is_whole(file: Path) -> bool:
    content = file.read_bytes()
    if content.startswith(b"PK"):
        return zipfile.is_zipfile(file) and zipfile.ZipFile(file).testzip() is None
    if file.name.startswith("stacks-"):
        return bool(json.loads(content))
    return file.name == "file" and (
        content.endswith(b"</html>") or re.fullmatch(rb"([0-9a-f]+ [^\n]+\n)+", content) is not None
    )


@pytest.fixture
def place(start_ranks: StartRanks, tmp_path: Path) -> Iterator[Place]:
    job = start_ranks(SOURCES / "ranks.c")
    kept = tmp_path / "KEPT"
    kept.mkdir()
    made = subprocess.run([built("inspector"), "report", str(job.pid), "--json"], capture_output=True, check=True)
    (kept / "report").write_bytes(made.stdout)
    subprocess.run(
        [built("inspector"), "snapshot", str(job.pid), "-o", str(kept / "snapshot")], capture_output=True, check=True
    )
    start = re.search("([0-9a-f]+)-.* r-xp .*ranks", Path(f"/proc/{job.pid}/maps").read_text())
    assert start is not None
    yield Place(job, tmp_path, start.group(1))


def moments(loaded: int, calls: int) -> Iterator[str]:
    """Evenly and by chance: over what loads the command, and over what it does then."""
    parts = [(1, loaded), (loaded, calls)]
    for number in range(STRIKES):
        first, last = parts[number % 2]
        width = (last - first) / (STRIKES / 2)
        at = first + int((number // 2 + random.random()) * width)
        yield f"{max(1, min(at, last))}+{random.randrange(MOST_STEPS)}"


@pytest.mark.parametrize("command", COMMANDS)
def test_wherever_a_signal_strikes(place: Place, command: str) -> None:
    whole = place.strike(AS_LONG.get(command, COMMANDS[command]), "never", 0)
    loaded, calls = map(int, whole.report.split())
    assert place.left() == []
    wrong = []
    for number, when in enumerate(moments(loaded, calls)):
        way = list(WAYS)[number % len(WAYS)]
        struck = place.strike(COMMANDS[command], when, way)
        left = place.left()
        # while it follows, Ctrl-C is how people end it
        statuses = (0, 130) if command == "events" and way == signal.SIGINT else (WAYS[way],)
        if struck.report == "struck" and (not ended_well(struck, statuses) or left):
            wrong.append((struck, left))
    assert wrong == []


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 3])
def test_in_the_midst_of_an_archive(place: Place, way: signal.Signals, times: int) -> None:
    """`zipfile` then has a part open, of which its archive's end would complain, and its destructor once more."""
    struck = place.strike(COMMANDS["snapshot"], f"zipfile._get_compressor*{times}", way)
    assert (struck.report, struck.status, struck.said, struck.complained) == ("struck", WAYS[way], "", "")
    assert place.left() == [] and list((place.folder / "OUT").iterdir()) == []


@pytest.mark.parametrize("command", ["snapshot", "watch"])
def test_the_terminal_is_given_back(place: Place, command: str) -> None:
    """Settings, screen and cursor; of the bar nothing is left."""
    whole = place.strike(COMMANDS["snapshot"], "never", 0, terminal=True)
    loaded, calls = map(int, whole.report.split())
    if command == "watch":
        loaded, calls = calls, 4 * calls  # what comes first is a bar, too
    wrong = []
    for when in moments(loaded, calls):
        struck = place.strike(COMMANDS.get(command, "inspector watch PID --every 50ms"), when, signal.SIGTERM, True)
        if struck.report == "struck" and (struck.status != 143 or struck.complained or not is_given_back(struck.said)):
            wrong.append(struck)
    assert wrong == [] and place.left() == []


def is_given_back(written: str) -> bool:
    """By the last of each of xterm's private modes, and by what stands behind the last line that was drawn."""
    modes = dict(re.findall(r"\x1b\[\?([0-9]+)([hl])", written))
    seen = {mode for mode, value in modes.items() if value == "h"}
    line = re.split(r"\r\x1b\[2K|\r\n\x1b\[\?25h\r\x1b\[1A\x1b\[2K|\x1b\[\?1049l", written)[-1]
    return seen <= {"25", "7"} and re.sub(r"\x1b\[\?[0-9]+[hl]", "", line) == "" and "Traceback" not in written


def ended_well(struck: Struck, statuses: tuple[int, ...]) -> bool:
    return (
        struck.status in statuses and SAID.fullmatch(struck.complained) is not None and "Traceback" not in struck.said
    )
