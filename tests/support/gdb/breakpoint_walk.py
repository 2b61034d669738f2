"""Random walks over GDB's breakpoint commands: the same commands in a job of ranks and in one process without MPI.

Takes a seed; gives commands, and what GDB has said and where it has stopped after each of them. The process does what
the ranks do one after the other (paces.c), so that all of it must be equal: stops, errors, what is left of counts.

By hand: `python -m tests.support.gdb.breakpoint_walk --walks 100 [--seed N] [--steps N] [--terminal] [--gdb PATH]`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from tests.support.gdb.session import EXTENSION, PRELUDE
from tests.support.gdb.terminal import PROMPT, terminal
from tests.support.host.script import told_by
from tests.support.running import built

SOURCE = Path(__file__).resolve().parents[2] / "gdbext" / "sources" / "paces.c"
RANKS = 4
TURNS = 40  # of each rank: a walk that is longer than the program spends its time on new starts
FUNCTIONS = ("pace_up", "pace_down", "pace_about", "pace_on")
START = "tbreak walk"  # before each run, which would pass no breakpoint where all are gone
CONDITIONS = ("turn == 1", "pacer == 2", "paced > 4", "turn + pacer == 3", "no_such_name == 1", "$_rank_no_such(1)")

SECONDS_A_STEP = 20  # at most: once the program has ended each step runs it again, which takes processor time
CRASH = "internal problem|internal-error|Fatal signal"  # GDB's words

# In GDB: what has happened by a command, and what it has left.
NOTING = r"""
import re

notes = []

def stopped_in():
    names, frame = [], gdb.selected_frame()
    while frame is not None and frame.is_valid() and frame.name() != "main":
        names.append(frame.name())
        frame = frame.older()
    return names

def breakpoints():
    found = []
    for one in sorted(gdb.breakpoints(), key=lambda one: abs(one.number)):
        watches = is_watchpoint(one.number)
        hits = value(f"$_rank_hits({one.number})") if JOB and not watches else one.hit_count
        is_by_address = watches or is_catchpoint(one.number)
        found.append([abs(one.number) if one.visible else 0, one.type, bool(one.enabled), bool(one.temporary),
                      one.ignore_count, "" if is_by_address else one.condition or "", one.commands or "", hits,
                      [] if is_by_address else enabled_locations(one)])
    return sorted([one for one in found if one[0]]) + sorted(one for one in found if not one[0])

def enabled_locations(one):
    "GDB 12 does not tell them, and before there are ranks there are none."
    return [bool(place.enabled) for place in one.locations] if is_running() and gdb.VERSION > "13" else []

def note(said=""):
    if not is_running():  # another run's watchpoints would be of other ranks than the process's
        for one in watchpoints():
            one.delete()
    at = []
    if gdb.selected_inferior().pid and gdb.selected_thread() is not None:
        names, sal = stopped_in(), gdb.selected_frame().find_sal()
        at = [names, sal.line if names and sal.symtab else 0, value("pacer"), value("paced")]
    notes.append([said, at, breakpoints()])
    tell("notes", notes)

def is_running():
    return bool(gdb.selected_inferior().pid)

def watchpoints():
    return [one for one in gdb.breakpoints() if one.type in (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)]

def is_watchpoint(number):
    return any(one.number == number for one in watchpoints())

def is_catchpoint(number):
    "GDB 12 has none in Python."
    kind = getattr(gdb, "BP_CATCHPOINT", None)
    return any(one.number == number and one.type == kind for one in gdb.breakpoints())

def has_room():
    "The processor watches four places; each rank's variable is one of its own, and the process has one for all."
    at_places = [one for one in gdb.breakpoints() if one.type == gdb.BP_HARDWARE_BREAKPOINT]
    return len(watchpoints()) + len(at_places) < 4

def hbreak(function):
    if has_room():
        gdb.execute(f"hbreak {function}")

def watch(kind):
    "The variable of one rank, which the process has for all."
    if is_running() and has_room():
        gdb.execute(f"{kind} -l paced if pacer == {value('pacer')}")

def condition(number, command):
    "A watchpoint keeps its own, which stands for its rank; a catchpoint's names the variables of the rank that stops."
    if is_catchpoint(number) and "turn" in command:
        return  # of a function that does not call the system
    if JOB and is_catchpoint(number):
        command = "condition" + re.sub(r"\b(pacer|paced)\b", own, command.rpartition("condition")[2].rstrip('"'))
    if not is_watchpoint(number):
        gdb.execute(command)

def own(name):
    kind = {"pacer": "int", "paced": "long"}[name[0]]
    return f'*({kind} *)$_rankaddr("{name[0]}", $_rank_of($sp))'

def finish():
    "Not into `main`, which the two programs do not share."
    if is_running() and "walk" in stopped_in()[1:]:
        gdb.execute("finish")

def act(command):
    try:
        if not is_running():
            gdb.execute(START, to_string=True)
            command = "run"
        gdb.execute(command, to_string=True)
        said = ""
    except (gdb.error, gdb.GdbError) as error:
        said = str(error)
    note(said)
"""


class GdbCrashError(Exception):
    """GDB itself crashes at a walk, without the extension."""


@dataclass(frozen=True)
class Programs:
    """The same program as a job's and as a process's."""

    job: Path
    alone: Path

    @classmethod
    def build(cls, folder: Path) -> Programs:
        job, alone = folder / "job" / "paces", folder / "alone" / "paces"
        for program, command in ((job, [str(built("rankcc"))]), (alone, ["gcc", f"-DALONE={RANKS}"])):
            program.parent.mkdir(parents=True)
            subprocess.run([*command, "-g", "-O0", str(SOURCE), "-o", str(program)], check=True, timeout=120)
        return cls(job, alone)


@dataclass(frozen=True)
class Walk:
    """Commands, one a step."""

    seed: int
    commands: tuple[str, ...]


def walk_of(seed: int, steps: int) -> Walk:
    """The walk of a seed: it begins at the first stop in the program."""
    dice = random.Random(seed)
    return Walk(seed, ("run", *(step(dice) for _ in range(steps)), "delete", "continue"))


def step(dice: random.Random) -> str:
    """One command; numbers of breakpoints may be of none, and GDB says so."""
    number = dice.randint(1, 12)
    function, count = dice.choice(FUNCTIONS), dice.randint(1, 5)
    line = dice.choice(lines_of_code())
    condition, holds = dice.choice(CONDITIONS), dice.choice(CONDITIONS[:4])
    making = [
        f"break {function}",
        f"break paces.c:{line}",
        f"tbreak {function}",
        f"break {function} if {dice.choice(CONDITIONS[:4])}",
        f"tbreak {function} if {dice.choice(CONDITIONS[:4])}",
        f"python hbreak('{function}')",
        "rbreak ^pace_[ud]",
        "catch syscall getppid",
        "python watch('watch')",
        "python watch('awatch')",
        f'python gdb.Breakpoint("{function}")',
        f'python gdb.Breakpoint("{function}", internal=True)',
        f'python gdb.Breakpoint("{function}", temporary=True)',
        "python gdb.FinishBreakpoint(gdb.newest_frame(), internal=True)",
        f'interpreter-exec mi "-break-insert {function}"',
        f'interpreter-exec mi "-break-insert -t -i {count} {function}"',
    ]
    changing = [
        f"enable once {number}",
        f"enable count {count} {number}",
        f"enable delete {number}",
        f"enable {number}",
        f"disable {number}",
        f"enable {number}.{dice.choice((1, 2))}",
        f"disable {number}.{dice.choice((1, 2))}",
        f"delete {number}",
        f"ignore {number} {count}",
        f"python condition({number}, 'condition {number} {condition}')",
        f"python condition({number}, 'condition {number}')",
        f"clear {function}",
        "enable",
        f"python gdb.execute('commands {number}\\nsilent\\nset $seen = $seen + 1\\nend')",
        f"python gdb.execute('commands {number}\\nset $seen = $seen + 1\\ncontinue\\nend')",
        f"python gdb.execute('commands {number}\\nend')",
        f"""python condition({number}, 'interpreter-exec mi "-break-condition {number} {holds}"')""",
        f'interpreter-exec mi "-break-after {number} {count}"',
        f'interpreter-exec mi "-break-disable {number}"',
        f'interpreter-exec mi "-break-enable {number}"',
        f'interpreter-exec mi "-break-delete {number}"',
        "save breakpoints saved",
    ]
    return dice.choice(
        [dice.choice(making), dice.choice(changing), dice.choice(["continue", "continue", "python finish()"])]
    )


def lines_of_code() -> list[int]:
    """The lines of the functions that all ranks call, but those of `main`, which the two programs do not share."""
    lines = SOURCE.read_text().partition("int main(")[0].splitlines()
    return [number for number, line in enumerate(lines, 1) if re.match(r" {4,}(paced|sink|return turn|pace_)", line)]


def notes_of(gdb: Path, walk: Walk, programs: Programs, folder: Path, is_job: bool, typed: bool = False) -> list[Any]:
    """What a walk has come to; with `typed` its commands are typed at a terminal."""
    script = folder / "script.py"
    load = f"gdb.execute('source {EXTENSION}')\n" if is_job else ""
    script.write_text(f"{PRELUDE}{load}JOB = {is_job}\nSTART = {START!r}\ngdb.execute('set $seen = 0')\n{NOTING}")
    program = [built("rankrun"), "-n", RANKS, programs.job] if is_job else [programs.alone]
    words = ["-x", script, "--args", *program, TURNS]
    if typed:
        try:
            return typed_notes(gdb, walk, folder, words)
        except OSError as error:  # the terminal's other side is gone
            if is_job:
                raise AssertionError(f"seed {walk.seed}: GDB ended") from error
            raise GdbCrashError from error
    script.write_text(script.read_text() + "".join(f"act({command!r})\n" for command in walk.commands))
    command = [str(gdb), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", *map(str, words)]
    told = told_by(command, folder, {}, len(walk.commands) * SECONDS_A_STEP)
    if not is_job and re.search(CRASH, told.output):
        raise GdbCrashError
    if len(told.facts.get("notes", [])) != len(walk.commands):
        raise AssertionError(f"seed {walk.seed}: GDB ended, or its script:\n{told.output[-3000:]}")
    return list(told["notes"])


def typed_notes(gdb: Path, walk: Walk, folder: Path, words: list[object]) -> list[Any]:
    """The same of commands that are typed; what GDB says to them is not compared."""
    path = folder / "told.json"
    path.unlink(missing_ok=True)
    with patched_environment(folder, {"RANKLENS_TOLD": str(path)}), terminal(gdb, *words) as user:
        user.wait_for(PROMPT)
        notes: list[Any] = []
        for command in walk.commands:
            is_over = not notes or not notes[-1][1]
            if is_over:
                user.ask(START)
            user.ask("run" if is_over else command)
            user.ask("python note()")
            notes = json.loads(path.read_text())["notes"]
    return notes


@contextmanager
def patched_environment(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Start what is started inside in a folder, with these variables."""
    before, kept = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(kept)


def differences(walk: Walk, alone: list[Any], job: list[Any], typed: bool = False) -> Iterator[str]:
    """Where a job's notes are not those of the process, for a person to read."""
    for number, (command, expected, found) in enumerate(zip(walk.commands, alone, job)):
        if typed:
            expected, found = expected[1:], found[1:]
        if expected != found:
            before = "\n  ".join(walk.commands[: number + 1])
            yield f"seed {walk.seed}, step {number}, {command}:\n  alone {expected}\n  job   {found}\n  {before}"
            return


def main() -> int:
    parser = argparse.ArgumentParser(description="Walk at random over GDB's breakpoint commands.")
    parser.add_argument("--gdb", type=Path, default=Path("/usr/bin/gdb"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--walks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--terminal", action="store_true")
    asked = parser.parse_args()
    first: Optional[int] = asked.seed
    seeds = range(first, first + asked.walks) if first is not None else random.sample(range(1 << 32), asked.walks)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        programs = Programs.build(Path(name))
        for seed in seeds:
            walk = walk_of(seed, asked.steps)
            try:
                alone, job = (
                    notes_of(asked.gdb, walk, programs, Path(name), is_job, asked.terminal) for is_job in (False, True)
                )
                found = list(differences(walk, alone, job, asked.terminal))
            except GdbCrashError:
                print(f"seed {seed}: GDB crashes without ranklens", flush=True)
                continue
            except (AssertionError, subprocess.TimeoutExpired, pytest.fail.Exception) as error:
                found = [f"seed {seed}: {error}"]
            failed += bool(found)
            print("\n".join(found) or f"seed {seed}: {len(walk.commands)} steps equal", flush=True)
    print(f"{len(seeds) - failed} of {len(seeds)} walks of {asked.steps} steps are equal")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
