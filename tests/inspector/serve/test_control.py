"""Stock GDB controls a rank as it controls a process: the same commands give the same stops, steps and values.

The oracle is the same program as one process per rank under MPICH, with a plain GDB in the process of the same rank.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.inspector.turns import EXPECTED, Turns, results
from tests.support.running import built
from tests.support.sharing import Shared

RANK = 2
SETTINGS = ("set sysroot /", "set remotetimeout 60", "set auto-load python-scripts off")
# Each list begins where the program waits for the file; `go` makes the file, all else is GDB's.
WALKS = {
    "breakpoints": (
        "break work", "go", "continue", "print number", "print done", "info args", "bt", "continue", "print turn",
        "tbreak weigh", "continue", "info args", "continue", "info breakpoints", "condition 1 turn == 4", "continue",
        "print turn", "delete", "break main", "info breakpoints",
    ),
    "counts": (
        "break weigh", "go", "ignore 1 2", "continue", "print turn", "info breakpoints", "disable 1", "break pass_on",
        "continue", "print turn", "enable 1", "continue", "continue", "info breakpoints",
    ),
    "steps": (
        "break work", "go", "continue", "next", "next", "print done", "step", "next", "next", "next", "next", "step",
        "print done", "next", "step", "next", "next", "until", "finish", "step", "step", "print level",
    ),
    "finish": (
        "break weigh", "go", "continue", "finish", "next", "print level", "continue", "up", "finish", "delete",
        "tbreak pass_on", "continue", "finish", "advance weigh", "finish", "print level",
    ),
    "watchpoints": (
        "break work", "go", "continue", "watch done", "continue", "print turn", "continue", "continue", "delete 2",
        "rwatch number", "continue", "delete 3", "next", "watch level if level > 10", "continue", "print level",
        "delete", "tbreak weigh", "continue", "watch sum", "continue", "continue", "continue",
    ),
    "end": ("break weigh if turn == 5", "go", "continue", "delete", "continue", "info program"),
}  # fmt: skip
SCRIPT = """
for setting in SETTINGS:
    ask(setting)
tell("connected", ask(CONNECT))
answers = []
for command in WALK:
    if command == "go":
        open(GO, "w").close()
    else:
        answers.append([command, ask(command)])
        tell("answers", answers)
if gdb.selected_inferior().pid:
    ask("delete")
    ask("detach")
"""
# The command `inspector`, in which each step of a thread is taken for one that waits in the kernel for long.
SLOW = """
from unittest.mock import patch
from ranklens_inspector.cli import main
with (
    patch("ranklens_inspector.serve.control.controlled_job.STEP_SECONDS", -1.0),
    patch("pieglobalsfind.targets.traced_threads.is_waiting", lambda tid: True),
):
    raise SystemExit(main())
"""
MEANT = re.compile(r"^(?:\[Switching to .*|Continuing\..*|warning: .*|\[Thread .* exited\])\n", re.MULTILINE)


def told(session: Session, walk: str, connect: str, go: Path) -> list[tuple[str, str]]:
    script = SCRIPT
    for name, value in (("SETTINGS", SETTINGS), ("CONNECT", connect), ("WALK", WALKS[walk]), ("GO", str(go))):
        script = script.replace(name, repr(value))
    answers = session.run(script, source=False)
    assert not answers["connected"].startswith("error: "), answers.output
    return [(command, plain(answer)) for command, answer in answers["answers"]]


def plain(answer: str) -> str:
    """What does not depend on where a process is, and how GDB names it."""
    answer = re.sub(r"0x[0-9a-f]+", "0x", MEANT.sub("", answer))
    answer = re.sub(r"^0x in (\w+ \()", r"\1", answer, flags=re.MULTILINE)
    answer = re.sub(r"\(process \d+\)", "(process)", answer)
    return re.sub(r"argv=0x\b|argc=\d+", "", answer)


KINDS = (("pie", ()), ("pie", ("--pes", 2)), ("pie", ("--share-code",)), ("tls", ()), ("tls", ("--pes", 2)))


def native_answers(gdb: Path, turns: Turns, shared: Shared, folder: Path, walk: str) -> list[list[str]]:
    """Of a plain GDB in a process, once a test run."""

    def make(place: Path) -> None:
        job = turns.native()
        pid = turns.process_of(job, RANK)
        answers = told(Session(gdb, folder), walk, f"attach {pid}", turns.go)
        assert results(job) == EXPECTED
        turns.go.unlink()
        (place / "answers").write_text(json.dumps(answers))

    found: list[list[str]] = json.loads((shared.made(f"turns.{walk}", make) / "answers").read_text())
    return found


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("method, options", KINDS, ids=[" ".join(map(str, (method, *more))) for method, more in KINDS])
def test_as_in_a_process(
    walk: str, method: str, options: tuple[object, ...], gdb: Path, turns: Turns, shared: Shared, tmp_path: Path
) -> None:
    check(walk, method, options, [built("inspector")], gdb, turns, shared, tmp_path)


@pytest.mark.parametrize("walk", ["breakpoints", "counts", "steps"])
def test_steps_that_take_long(walk: str, gdb: Path, turns: Turns, shared: Shared, tmp_path: Path) -> None:
    """All other threads run and stop in the midst of each: a step must outlast that."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    server: list[object] = [sys.executable, script]
    check(walk, "tls", ("--pes", 2), server, gdb, turns, shared, tmp_path)


def check(
    walk: str,
    method: str,
    options: tuple[object, ...],
    server: list[object],
    gdb: Path,
    turns: Turns,
    shared: Shared,
    folder: Path,
) -> None:
    wanted = native_answers(gdb, turns, shared, folder, walk)
    job = turns.virtual(method, *options)
    pid = turns.process_of(job, RANK)
    connect = f"target extended-remote | {' '.join(map(str, server))} serve {pid} --control --rank {RANK}"
    found = told(Session(gdb, folder), walk, connect, turns.go)
    assert [list(each) for each in found] == wanted
    assert results(job) == EXPECTED
