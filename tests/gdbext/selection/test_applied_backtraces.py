"""`rank apply SET bt` is the text of each rank's own `bt`, whatever the user has set."""

from __future__ import annotations

from pathlib import Path

from tests.oracle.test_oracle import PROGRAMS
from tests.support.gdb.session import Session
from tests.support.oracle.program import copied, virtual
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

RANKS = 9
ASKED = (
    ("", "bt 2"),
    ("", "where -3"),
    ("", "bt full"),
    ("set print frame-arguments all", "bt"),
    ("set print entry-values both", "bt"),
    ("set output-radix 16", "bt"),
    ("set filename-display basename", "bt"),
    ("set backtrace limit 3", "bt"),
    ("set rank fold-runtime off", "bt"),
)
SCRIPT = f"""
import re

shown = {{}}
for setting, command in {ASKED}:
    if setting:
        ask(setting)
    parts = re.split(r"^Rank \\d+, .*:\\n", ask("rank apply all " + command), flags=re.MULTILINE)
    own = []
    for rank in range({RANKS}):
        ask(f"rank {{rank}}")
        own.append(ask(command).rstrip("\\n"))
    ask("rank none")
    shown[setting + ", " + command] = [[part.rstrip("\\n") for part in parts[1:]], own]
tell("shown", shown)
"""


def test_all_ranks(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, shared: Shared) -> None:
    program = next(program for program in PROGRAMS if str(program) == "cells-O2")
    job = start_job(rankrun, "-n", RANKS, copied(program, virtual(), shared, tmp_path), "--level=3")
    job.wait_for("holding")
    wait_until_it_loops(job.pid)
    shown = session.attach(SCRIPT, job.pid)["shown"]
    assert len(shown) == len(ASKED)
    for asked, (applied, own) in shown.items():
        assert applied == own, asked
        assert len(own) == RANKS and all("#" in text for text in own), asked
