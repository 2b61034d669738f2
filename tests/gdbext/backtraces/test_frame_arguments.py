"""How much of arguments a backtrace prints is what settings and options ask for, as of a process."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.gdb.places import SOURCES, compile_program
from tests.support.gdb.session import Session

AMOUNTS = ("scalars", "all", "none", "presence")
ADDRESS = r"0x[0-9a-f]+"


def test_backtraces(session: Session, rankrun: Path, tmp_path: Path) -> None:
    job = compile_program("rankcc", tmp_path, "pairs.c")
    alone = tmp_path / "alone"
    source = str(SOURCES / "pairs.c")
    subprocess.run(["gcc", "-g", "-O0", "-DALONE", source, "-o", str(alone)], check=True, timeout=120)
    script = f"""
gdb.execute("break add")
gdb.execute("run")
shown = [ask("bt -frame-arguments " + amount) for amount in {AMOUNTS}]
for amount in {AMOUNTS}:
    gdb.execute("set print frame-arguments " + amount)
    shown += [ask("bt"), ask("bt 1")]
tell("shown", shown)
"""
    answers = [
        session.run(script, "--args", *words, source=words != [alone])["shown"]
        for words in ([rankrun, "-n", "1", job], [alone])
    ]
    in_rank, in_process = ([re.sub(ADDRESS, "ADDRESS", answer) for answer in one] for one in answers)
    assert "pair={first = 2, second = 2.5}" in in_process[1]
    assert in_rank == in_process
