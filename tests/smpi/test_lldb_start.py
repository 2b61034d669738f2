"""LLDB that starts a job, as smpirun offers it: a breakpoint from before the start stops every rank, as itself."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.running import ROOT
from tests.support.sharing import Shared
from tests.support.smpi.jobs import SOURCES, built, command, needs_smpi

pytestmark = [needs_smpi, pytest.mark.timeout(900)]
RANKS, TURNS = 3, 3
DEADLOCK = "simgrid::kernel::EngineImpl::display_all_actor_status"
AT_STOP = ("print g_rank", "print n", "rank print g_rank", "continue")


def debugged(
    folder: Path, program: Path, commands: Sequence[str], is_own: bool = False, options: Sequence[str] = ()
) -> str:
    """What an LLDB says that smpirun starts: by `-wrapper`, or by its own option `-lldb`, which looks for `lldb`.

    The latter keeps the copies' files, in TMPDIR.
    """
    script = folder / "commands"
    start = [
        "script lldb.debugger.SetAsync(False)",  # as it is where LLDB reads commands from the file that -s names
        f"command script import {ROOT / 'lldbext'}",
        "settings set auto-confirm true",
    ]
    script.write_text("\n".join([*start, *commands, "quit"]) + "\n")
    (folder / "lldb").symlink_to(find_lldb())
    how = ["-lldb"] if is_own else ["-wrapper", f"{find_lldb()} -x -s {script} --"]
    done = subprocess.run(
        command(folder, RANKS, program, *how, *options),
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)},
        input=f"command source {script}\n" if is_own else "",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    return done.stdout


def values_in(said: str) -> list[int]:
    return [int(one) for one in re.findall(r"^\(int\) (-?\d+)$", said, re.MULTILINE)]


def check_sums(said: str) -> None:
    """No rank has lost an instruction."""
    assert sorted(re.findall(r"SUM (\d) (\d+)\r?$", said, re.MULTILINE)) == [(str(one), "6") for one in range(RANKS)]
    assert "exited with status = 0" in said


@pytest.mark.parametrize("how", ["wrapper", "own option"])
def test_a_breakpoint_from_before_the_start_is_hit_once_in_every_rank(how: str, shared: Shared, tmp_path: Path) -> None:
    stops = [word for _ in range(RANKS * TURNS) for word in AT_STOP]
    commands = ["breakpoint set -n leaf", "run", *stops]
    said = debugged(tmp_path, built(shared, "sums.c"), commands, is_own=how == "own option")
    values = values_in(said)
    hits = sorted(zip(values[::2], values[1::2]))
    assert hits == [(rank, turn) for rank in range(RANKS) for turn in range(1, TURNS + 1)], said
    # By the last stop all ranks have stored their number, each in its own copy.
    assert re.findall(r"^(\d): (-?\d+)$", said, re.MULTILINE)[-RANKS:] == [(str(one), str(one)) for one in range(RANKS)]
    check_sums(said)


@pytest.mark.parametrize("privatization", ["dlopen", "mmap"])
def test_a_condition_from_before_the_start_is_each_rank_s_own(
    privatization: str, shared: Shared, tmp_path: Path
) -> None:
    commands = ["breakpoint set -n leaf -c 'g_rank == 2'", "run"]
    commands += [word for _ in range(TURNS) for word in ("print g_rank", "print n", "continue")]
    said = debugged(tmp_path, built(shared, "sums.c"), commands, options=[f"--cfg=smpi/privatization:{privatization}"])
    values = values_in(said)
    assert list(zip(values[::2], values[1::2])) == [(2, turn) for turn in range(1, TURNS + 1)], said
    check_sums(said)


def test_one_rank_s_breakpoint_steps_and_watchpoint(shared: Shared, tmp_path: Path) -> None:
    """`finish`, and `next` over a call in which all other ranks run, stay in the rank; so does what it writes."""
    commands = ["breakpoint set -n leaf -c 'n == 1'", "run", "breakpoint disable 2", "rank break leaf 1", "continue"]
    commands += ["print g_rank", "print n", "finish", "next", "next", "next", "print g_rank", "breakpoint disable"]
    commands += ["rank 2", "watchpoint set variable s_counter", "continue", "print g_rank", "print s_counter"]
    said = debugged(tmp_path, built(shared, "sums.c"), [*commands, "watchpoint delete", "continue"])
    lines = (SOURCES / "sums.c").read_text().splitlines()
    at = {name: next(number for number, line in enumerate(lines, 1) if name in line) for name in ("leaf(i)", "for (")}
    shown = [int(one) for one in re.findall(r" at sums\.c:(\d+)(?::\d+)?$", said, re.MULTILINE)]
    barrier = at["leaf(i)"] + 1
    steps = [at["leaf(i)"], barrier, at["for ("], at["for ("] + 1]
    assert any(shown[first : first + len(steps)] == steps for first in range(len(shown))), (shown, said)
    own, turn, still, watched, value = values_in(said)
    assert (own, still, watched) == (1, 1, 2) and turn in (1, 2) and value in (3, 6), said  # who is first is SMPI's
    assert re.search(rf"^new value: {value}$", said, re.MULTILINE), said
    check_sums(said)


def test_a_job_that_simgrid_calls_deadlocked_is_caught_before_it_ends(shared: Shared, tmp_path: Path) -> None:
    """As test_breakpoints.py has it in GDB."""
    commands = [f"breakpoint set -n {DEADLOCK}", "run", "rank list", "rank print g_rank"]
    said = debugged(tmp_path, built(shared, "deadlock.c"), commands)
    rows = re.findall(r"^\s+(\d)\s+blocked\s+\d\s+MPI_Recv from (\d), tag 5", said, re.MULTILINE)
    assert rows == [("0", "1"), ("1", "2"), ("2", "0")], said
    assert re.findall(r"^(\d): (\d)\r?$", said, re.MULTILINE) == [(str(one), str(one)) for one in range(RANKS)]
