"""`rank apply SET bt` without visiting every rank, against visiting every rank: the same text, to the letter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.oracle.test_oracle import IN_CORES, PROGRAMS
from tests.support.debuggers import gdb_version
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.oracle.program import Program, copied, virtual
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

RANKS = {"cells": 9, "shapes": 5, "fields": 9}  # the C++ program has room for five
QUICK = ("bt", "bt 2", "where -3")
VISITED = ("bt full",)
SETTINGS = (
    "set print frame-arguments all",
    "set print frame-arguments none",
    "set print frame-arguments scalars",
    "set print entry-values both",
    "set print entry-values default",
    "set print address off",
    "set print address on",
    "set print symbol off",
    "set print symbol on",
    "set output-radix 16",
    "set output-radix 10",
    "set language pascal",
    "set language auto",
    "set filename-display basename",
    "set filename-display relative",
    "set backtrace limit 3",
    "set backtrace limit unlimited",
    "set rank fold-runtime off",
)

COMPARE = """
import re
from gdbext.selection.debugger import GdbDebugger

entered = []
enter = GdbDebugger._enter

def record(face, rank, reason):
    entered.append(rank)
    return enter(face, rank, reason)

GdbDebugger._enter = record

def applied(command):
    text = ask("rank apply all " + command)
    parts = re.split(r"^Rank \\d+, .*:\\n", text, flags=re.MULTILINE)
    return [part.rstrip("\\n") for part in parts[1:]]

def visited(command):
    found = []
    for rank in range(ranks):
        ask(f"rank {rank}")
        found.append(ask(command).rstrip("\\n"))
    return found

found = {}
for setting, command in asked:
    if setting:
        ask(setting)
    del entered[:]
    quick = applied(command)
    found[setting + ", " + command] = [quick, sorted(set(entered)), visited(command)]
    ask("rank none")
tell("found", found)
"""


def script(program: Program, asked: Iterable[tuple[str, str]]) -> str:
    return f"ranks, asked = {RANKS[program.name]}, {list(asked)}\n{COMPARE}"


Found = dict[str, tuple[list[str], list[int], list[str]]]


def check(program: Program, found: Found) -> None:
    for asked, (quick, _, visited) in found.items():
        assert len(quick) == len(visited) == RANKS[program.name]
        for rank, text in enumerate(quick):
            assert "#" in text, f"{asked}, rank {rank}: {text}"
            assert text == visited[rank], f"{asked}, rank {rank}"


def check_spared(program: Program, found: Found) -> None:
    """Some ranks were not visited, or nothing was compared; of `bt full` every one is.

    In the optimized Fortran program each rank has recursed as deep as its number says, and GDB's arguments depend on
    all callers: only the innermost frames are alike. From GDB 14 on the lines of the optimized C++ program are not
    computed, before GDB 13 no lines are, and every rank is visited: slower, and the same text.
    """
    if gdb_version() < (13, 0) or (str(program) == "shapes-O2" and gdb_version() >= (14, 0)):
        return
    for asked, (_, entered, _) in found.items():
        command = asked.partition(", ")[2]
        is_quick = command in (QUICK if str(program) != "fields-O2" else ("bt 2",))
        if is_quick or command in VISITED:
            assert (len(entered) < RANKS[program.name]) == is_quick, f"{asked}: visited {entered}"


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_live(
    program: Program, session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    job = start_job(rankrun, "-n", RANKS[program.name], copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    asked = [("", command) for command in (*QUICK, *VISITED)] + [("set rank fold-runtime off", QUICK[0])]
    found = session.attach(script(program, asked), job.pid)["found"]
    check(program, found)
    check_spared(program, found)


@pytest.mark.parametrize("program", IN_CORES, ids=str)
def test_core(
    program: Program, session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    job = start_job(rankrun, "-n", RANKS[program.name], copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    core = make_core(job.pid, tmp_path)
    found = session.run(script(program, [("", QUICK[0])]), rankrun.resolve(), core)["found"]
    check(program, found)
    check_spared(program, found)


def test_settings_are_obeyed(
    session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    program = next(program for program in PROGRAMS if str(program) == "cells-O2")
    job = start_job(rankrun, "-n", RANKS[program.name], copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    asked = [(setting, "bt") for setting in SETTINGS]
    check(program, session.attach(script(program, asked), job.pid)["found"])


@pytest.mark.parametrize("method", ["none", "pip", "fs", "tls", "hls"])
def test_methods(
    method: str, session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared
) -> None:
    """Copies at one distance, copies by the loader, no copies, and globals in thread-local blocks."""
    program = next(program for program in PROGRAMS if str(program) == "cells-O2")
    executable = copied(program, virtual(), shared, tmp_path)
    job = start_job(rankrun, "-n", RANKS[program.name], "--method", method, executable, "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    found = session.attach(script(program, [("", QUICK[0])]), job.pid)["found"]
    check(program, found)
    check_spared(program, found)
