"""GDB's Python does not list dprintf: what GDB writes into the program for it may be in no copy all the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.gdb.places import compile_program
from tests.support.gdb.session import Session

RANKS = 3


def test_a_dprintf_from_before_the_start_harms_no_rank(session: Session, rankrun: Path, tmp_path: Path) -> None:
    program = compile_program("rankcc", tmp_path, "ticks.c")
    alone = subprocess.run(
        [rankrun, "-n", str(RANKS), program], capture_output=True, text=True, timeout=120, check=True
    )
    script = """
ask('dprintf tick, "in tick\\\\n"')
tell("answer", ask("run"))
tell("status", str(gdb.parse_and_eval("$_exitcode")))
tell("signal", str(gdb.parse_and_eval("$_siginfo")) if gdb.selected_inferior().pid else "")
"""
    told = session.run(script, "--args", rankrun, "-n", RANKS, program)
    assert (told["status"], told["signal"]) == ("0", ""), told.output
    assert "warning: dprintf prints in no rank but the one" in told["answer"]
    assert all(line in told.output for line in alone.stdout.splitlines()), told.output
