"""LLDB that starts a job, as smpirun offers it: a breakpoint from before the start stops every rank, as itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.running import ROOT
from tests.support.sharing import Shared
from tests.support.smpi.jobs import built, command, needs_smpi

pytestmark = [needs_smpi, pytest.mark.timeout(900)]
RANKS, TURNS = 3, 3
AT_STOP = ("print g_rank", "print n", "rank print g_rank", "continue")


def debugged(folder: Path, program: Path, is_own: bool) -> str:
    """What an LLDB says that smpirun starts: by `-wrapper`, or by its own option `-lldb`, which looks for `lldb`.

    The latter keeps the copies' files, in TMPDIR.
    """
    script = folder / "commands"
    stops = [word for _ in range(RANKS * TURNS) for word in AT_STOP]
    start = [
        "script lldb.debugger.SetAsync(False)",  # as it is where LLDB reads commands from the file that -s names
        f"command script import {ROOT / 'lldbext'}",
        "settings set auto-confirm true",
        "breakpoint set -n leaf",
        "run",
    ]
    script.write_text("\n".join([*start, *stops, "quit"]) + "\n")
    (folder / "lldb").symlink_to(find_lldb())
    how = ["-lldb"] if is_own else ["-wrapper", f"{find_lldb()} -x -s {script} --"]
    done = subprocess.run(
        command(folder, RANKS, program, *how),
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)},
        input=f"command source {script}\n" if is_own else "",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    return done.stdout


@pytest.mark.parametrize("how", ["wrapper", "own option"])
def test_a_breakpoint_from_before_the_start_is_hit_once_in_every_rank(how: str, shared: Shared, tmp_path: Path) -> None:
    said = debugged(tmp_path, built(shared, "sums.c"), is_own=how == "own option")
    values = [int(one) for one in re.findall(r"^\(int\) (-?\d+)$", said, re.MULTILINE)]
    hits = sorted(zip(values[::2], values[1::2]))
    assert hits == [(rank, turn) for rank in range(RANKS) for turn in range(1, TURNS + 1)], said
    # By the last stop all ranks have stored their number, each in its own copy.
    assert re.findall(r"^(\d): (-?\d+)$", said, re.MULTILINE)[-RANKS:] == [(str(one), str(one)) for one in range(RANKS)]
    assert sorted(re.findall(r"SUM (\d) (\d+)\r?$", said, re.MULTILINE)) == [(str(one), "6") for one in range(RANKS)]
    assert "exited with status = 0" in said
