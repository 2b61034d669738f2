"""Something goes wrong at a chance moment of a command: its target ends, execs, stops, or it can write no more.

    .venv/bin/python -m tests.support.inspector.faults --tries 1000 [--seed 7] [FAULT...]

tries each fault so often and prints what was not as it should be, with the words and the moment. Commands run in forks
of one process, so that a try takes a fraction of a second. A moment is a number of calls of Python functions.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import os
import pkgutil
import pty
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, Optional

import inspector
import pieglobalsfind
from inspector import cli
from tests.support.inspector.faults_around import AROUND
from tests.support.inspector.faults_target import IN_TARGET, SOURCE, Job
from tests.support.inspector.killed_debugger import COMMANDS as DEBUGGER_COMMANDS
from tests.support.inspector.killed_debugger import DEBUGGER_KILLED, KilledDebugger
from tests.support.running import BIN

MOST_SECONDS = 120  # of one command; it takes a fraction of one, but on a loaded machine
COMMANDS = (
    "ranks PID",
    "report PID --html OUT/file",
    "report PID --json",
    "report --job PID",
    "globals PID --nonblocking",
    "pointers PID",
    "payload PID",
    "stacks PID",
    "stacks PID --freeze --json",
    "waits PID",
    "snapshot PID -o OUT/file",
    "perfmap PID -o OUT/file",
    "events PID --no-follow",
)


def commands(fault: str) -> tuple[str, ...]:
    """Those during which the fault happens."""
    return DEBUGGER_COMMANDS if fault == DEBUGGER_KILLED else COMMANDS


TERMINAL_CLOSED = "terminal closed"
LASTING = (
    TERMINAL_CLOSED,
    DEBUGGER_KILLED,
    "stopped",
    *AROUND,
)  # the target is as before, and serves the next try, too
FAULTS = (*IN_TARGET, *AROUND, TERMINAL_CLOSED, DEBUGGER_KILLED)
ENDS_BY_FAULT = {TERMINAL_CLOSED: (128 + signal.SIGHUP, -signal.SIGHUP), DEBUGGER_KILLED: (0, -signal.SIGKILL)}


# ---- a try ----


@dataclass(frozen=True)
class Outcome:
    """How a command has ended; `status` below 0 is a signal's number, `left` what it left behind."""

    fault: str
    command: str
    moment: int
    status: int
    output: str
    errors: str
    left: tuple[str, ...]
    calls: int

    @property
    def wrong(self) -> str:
        """Why this is not a good end; "" if it is one."""
        left = f"left behind: {', '.join(self.left)}" if self.left else ""
        if self.status in ENDS_BY_FAULT.get(self.fault, ()):
            return left
        if self.status not in (0, 1, 2):
            return f"status {self.status}"
        if "Traceback" in self.errors + self.output:
            return "a traceback"
        lines = self.errors.splitlines()
        if self.fault == TERMINAL_CLOSED:  # what it prints then reaches no reader
            return left
        if self.status == 2 and len([line for line in lines if line.startswith("inspector: ")]) != 1:
            return "not one sentence"
        return left


class Driver:
    """Tries commands on jobs of its own; everything lies in one folder, which the caller removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "changing"
        source = folder / "changing.c"
        source.write_text(SOURCE)
        subprocess.run([str(BIN / "rankcc"), "-g", str(source), "-o", str(self.program)], check=True, timeout=120)
        self.calls: dict[str, int] = {}
        self.lasting: Optional[Job] = None

    def try_at_chance(self, fault: str, command: str, chance: random.Random) -> Outcome:
        if command not in self.calls:
            none = fault if fault == DEBUGGER_KILLED else TERMINAL_CLOSED  # nothing happens before the moment
            self.run(none, command, -1)  # what it reads from files is in the cache then
            self.calls[command] = self.run(none, command, -1).calls
        return self.run(fault, command, chance.randrange(self.calls[command]))

    def run(self, fault: str, command: str, moment: int) -> Outcome:
        """One command, with the fault at the moment; -1: none."""
        job = self.job(fault)
        out, cache = self.folder / "OUT", self.folder / "cache"
        out.mkdir(exist_ok=True)
        if cache.is_file():
            cache.unlink()
        try:
            if fault == DEBUGGER_KILLED:
                status, output, errors, calls = KilledDebugger(self.folder).run(job.pid, command, moment)
            else:
                words = [{"PID": str(job.pid)}.get(word, word.replace("OUT", str(out))) for word in command.split()]
                status, output, errors, calls = self.run_in_fork(job, fault, words, moment)
            left = [*self.left(out), *self.held(job)]
        except BaseException:
            self.end(job)
            raise
        if fault not in LASTING or left:
            self.end(job)
        return Outcome(fault, command, moment, status, output, errors, tuple(left), calls)

    def job(self, fault: str) -> Job:
        """A target for a try: the one of the try before, if that has left it as it was."""
        if fault not in LASTING:
            return Job(self.program, is_mobile=fault == "migrated away")
        if self.lasting is None or self.lasting.state() in ("Z", ""):
            self.lasting = Job(self.program)
        return self.lasting

    def end(self, job: Optional[Job]) -> None:
        """End a target, or the one that was kept."""
        if job is self.lasting:
            self.lasting = None
        if job is not None:
            job.end()

    def run_in_fork(self, job: Job, fault: str, words: list[str], moment: int) -> tuple[int, str, str, int]:
        """Run a command with pipes around it; as a terminal's only process where that will be closed."""
        pipes = [os.pipe() for _ in range(4)]
        (output, says), (errors, complains), (asks, asked), (answered, answers) = pipes
        terminal, seat = pty.openpty() if fault == TERMINAL_CLOSED else (-1, -1)
        child = os.fork()
        if child == 0:
            os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
            if seat >= 0:
                sit_down(seat, terminal)
            else:
                os.dup2(says, 1)
                os.dup2(complains, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")  # not those of a test runner
            run_command(words, moment, lambda: inflict_here(fault, asked, answered), asked)
        for end in (says, complains, asked, answered, *([seat] if seat >= 0 else [])):
            os.close(end)
        texts = {output: b"", errors: b"", asks: b"", **({terminal: b""} if terminal >= 0 else {})}
        try:
            self.read_all(job, fault, child, texts, answers, terminal)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            for end in (output, errors, asks, answers, *([terminal] if terminal in texts else [])):
                os.close(end)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        calls = texts[asks].rpartition(b"x")[2]
        said = texts[output] + texts.get(terminal, b"")
        return status, said.decode(errors="replace"), texts[errors].decode(errors="replace"), int(calls or 0)

    @staticmethod
    def read_all(job: Job, fault: str, child: int, texts: dict[int, bytes], answers: int, terminal: int) -> None:
        """All that the command writes up to its end; the fault is done as soon as the command asks for it."""
        asks = list(texts)[2]
        deadline, is_done, is_open = time.monotonic() + MOST_SECONDS, False, set(texts)
        while is_open:
            for end in select.select(list(is_open), [], [], 1)[0]:
                data = read_some(end)
                texts[end] += data
                is_open -= set() if data else {end}
            if b"x" in texts[asks] and not is_done:
                is_done = True
                if fault in IN_TARGET:
                    IN_TARGET[fault](job)
                elif terminal >= 0:
                    is_open.discard(terminal)
                    os.close(terminal)
                    del texts[terminal]
                with suppress(BrokenPipeError):
                    os.write(answers, b"x")
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)  # a hang: the status says so

    @staticmethod
    def left(out: Path) -> list[str]:
        """Files that are not whole; all are removed."""
        wrong = []
        for file in out.iterdir():
            content = file.read_bytes()
            is_whole = zipfile.is_zipfile(file) or content.endswith((b"</html>", b"</html>\n"))
            if not is_whole and not re.fullmatch(rb"([0-9a-f]+ [^\n]+\n)+", content):
                wrong.append(f"{file.name} of {len(content)} bytes")
            file.unlink()
        return wrong

    @staticmethod
    def held(job: Job) -> list[str]:
        """Whether the target, if it is there still, is traced or does not run on."""
        if job.tracer():
            return [f"the job is traced by {job.tracer()}"]
        with suppress(ProcessLookupError):
            os.kill(job.pid, signal.SIGCONT)
        deadline = time.monotonic() + MOST_SECONDS
        while job.state() in ("t", "T"):
            if time.monotonic() > deadline:
                return ["the job is stopped"]
            time.sleep(0.001)
        return []


def sit_down(seat: int, terminal: int) -> None:
    """Let a terminal be this process's own: it ends by SIGHUP when the other side closes it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests in the background may ignore it
    os.close(terminal)
    os.setsid()
    fcntl.ioctl(seat, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(seat, stream)
    os.close(seat)


def read_some(end: int) -> bytes:
    """b"" at the end; a terminal that no process has open any more says EIO."""
    try:
        return os.read(end, 1 << 16)
    except OSError:
        return b""


def inflict_here(fault: str, asked: int, answered: int) -> None:
    """In the command: do the fault, or have the driver do it."""
    if fault in AROUND:
        AROUND[fault]()
        return
    os.write(asked, b"x")
    os.read(answered, 1)


def run_command(words: list[str], moment: int, inflict: Callable[[], None], asked: int) -> NoReturn:
    """In a process of its own: run the command, the fault at the moment, and end."""
    calls = 0

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1
        if calls == moment + 1 and moment >= 0:
            sys.settrace(None)
            inflict()

    status = 70
    try:
        sys.settrace(on_call)
        status = cli.main(words)
        sys.settrace(None)
        sys.stdout.flush()
        os.write(asked, str(calls).encode())
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def import_all() -> None:
    """Import what commands import when they need it, so that a try takes a quarter of the time."""
    for package in (inspector, pieglobalsfind):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):  # of what is not installed
                    importlib.import_module(module.name)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tries", type=int, default=1000, help="of each fault (1000)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--cold", action="store_true", help="commands import their modules, as they do for users")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"of: {', '.join(FAULTS)}; all by default")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if not options.cold:
        import_all()
    found = 0
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Path(folder))
        for fault in options.faults or FAULTS:
            words = commands(fault)
            outcomes = [
                driver.try_at_chance(fault, words[number % len(words)], chance) for number in range(options.tries)
            ]
            wrong = [outcome for outcome in outcomes if outcome.wrong]
            found += len(wrong)
            statuses = dict(sorted(Counter(outcome.status for outcome in outcomes).items()))
            print(f"{fault}: {len(outcomes)} tries, ended with {statuses}, {len(wrong)} wrong", flush=True)
            for outcome in wrong[:5]:
                print(f"  {outcome.wrong}: {outcome.command}, call {outcome.moment}\n{outcome.errors[-2000:]}")
        driver.end(driver.lasting)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
