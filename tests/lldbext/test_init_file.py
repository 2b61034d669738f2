"""The extension in a file of commands that LLDB reads first, as ~/.lldbinit: there is no program yet."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.gdb.places import hold, make_core
from tests.support.lldb.session import EXTENSION
from tests.support.running import StartJob

RANKS, ELEMENTS = 7, 3


def typed(lldb: Path, folder: Path, *commands: str) -> str:
    """What LLDB prints in answer to commands; it has to end well."""
    words = [word for line in (f"command script import {EXTENSION}", *commands) for word in ("-o", line)]
    done = subprocess.run(
        [str(lldb), "-x", "-b", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_core_file_of_several_kernel_threads(
    lldb: Path, tmp_path: Path, start_job: StartJob, rankrun: Path, program: Path
) -> None:
    core = make_core(hold(start_job(rankrun, "-n", RANKS, "--pes", ELEMENTS, program)).pid, tmp_path)
    said = typed(lldb, tmp_path, f"target create --core {core}", "thread list", "rank list")
    assert sorted(set(re.findall(r"'rank (\d+): ", said))) == [str(rank) for rank in range(RANKS)], said
    assert re.findall(r"^[ *]+(\d+)  (?:blocked|running)", said, re.MULTILINE) == [str(rank) for rank in range(RANKS)]


def test_a_breakpoint_before_there_is_a_process(lldb: Path, tmp_path: Path, rankrun: Path, program: Path) -> None:
    said = typed(
        lldb,
        tmp_path,
        f"target create {rankrun}",
        f"settings set -- target.run-args -n 4 {program}",
        "rank break work 2",
        "process launch",
        "rank",
        "process kill",
    )
    assert re.search(r"Breakpoint \d+: no locations \(pending\)", said), said
    assert re.search(r"stop reason = breakpoint", said) and re.search(r"^Rank 2\b|rank 2: running", said, re.M), said


def test_a_breakpoint_before_there_is_a_program(lldb: Path, tmp_path: Path) -> None:
    words = ["-o", f"command script import {EXTENSION}", "-o", "rank break work"]
    done = subprocess.run([lldb, "-x", "-b", *words], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "there is no program" in done.stderr and done.returncode in (0, 1), done.stderr
