"""Users' own Python in GDB meets ranks as it would meet processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import EXTENSION, Session

TIMES = 4

BEGIN = """
gdb.execute("set breakpoint pending on")
asked, events = [], []
class Mine(gdb.Breakpoint):
    def stop(self):
        rank = gdb.selected_frame().read_var("rank")
        asked.append([int(rank), value("ticks")])
        return int(rank) == LAST and value("ticks") == COUNT
def stopped(event):
    if isinstance(event, gdb.BreakpointEvent):
        events.append([[one.number for one in event.breakpoints if one.visible], event.breakpoint.number])
gdb.events.stop.connect(stopped)
mine = Mine("tick")
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


@pytest.mark.parametrize("last", range(RANKS))
@pytest.mark.parametrize("elements", [1, RANKS])
def test_a_class_of_breakpoints(session: Session, rankrun: Path, ticks: Path, last: int, elements: int) -> None:
    """Its `stop` is asked in every rank, and means that rank's variables; handlers of stops see it, not ours."""
    script = (
        BEGIN.replace("LAST", str(last)).replace("COUNT", "2")
        + """
gdb.execute("run")
tell("stop", [value("rank"), value("ticks"), value("$_rank")])
tell("events", events)
gdb.execute("continue")
tell("asked", asked)
"""
    )
    answers = session.run(script, "--args", rankrun, "-n", RANKS, "--pes", elements, ticks, TIMES)
    assert answers["stop"] == [last, 2, last], answers.output
    assert answers["events"] == [[[1], 1]], answers.output
    assert sorted(answers["asked"]) == [[rank, count] for rank in range(RANKS) for count in range(TIMES)], (
        answers.output
    )


def test_an_error_in_a_class_of_breakpoints_stops(session: Session, rankrun: Path, ticks: Path) -> None:
    """As in GDB."""
    script = """
class Wrong(gdb.Breakpoint):
    def stop(self):
        return nothing_of_that_name
gdb.execute("set breakpoint pending on")
Wrong("tick")
gdb.execute("run")
stops = 0
while gdb.selected_inferior().pid:
    stops += 1
    ask("continue")
tell("stops", stops)
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, ticks, TIMES)
    assert answers["stops"] == RANKS * TIMES and "nothing_of_that_name" in answers.output, answers.output


@pytest.mark.usefixtures("calls")
def test_checkpoints(session: Session, rankrun: Path, ticks: Path) -> None:
    script = """
gdb.execute("set breakpoint pending on")
gdb.execute("rank tbreak tick 2")
gdb.execute("run")
gdb.execute("checkpoint")
gdb.execute("next")
seen = [value("ticks")]
for number in (1, 0):
    gdb.execute(f"restart {number}")
    ask("rank list")
    seen.append([value("$_rank"), value("ticks"), gdb.selected_frame().name()])
tell("seen", seen)
ask("kill")
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, ticks, TIMES)
    assert answers["seen"] == [1, [2, 0, "tick"], [2, 1, "tick"]], answers.output


@pytest.mark.parametrize("options", [[], ["--interpreter=mi3"]], ids=["console", "MI"])
def test_a_script_that_quits(gdb: Path, rankrun: Path, ticks: Path, tmp_path: Path, options: list[str]) -> None:
    """GDB executes a script of -x before its event loop, which what is posted there waits for."""
    script = tmp_path / "script"
    script.write_text("set breakpoint pending on\nset confirm off\nbreak tick\nrun\ncontinue\nquit 7\n")
    words = [str(gdb), "-nx", "-q", *options, "-iex", "set debuginfod enabled off", "-ix", str(EXTENSION)]
    words += ["-x", str(script), "--args", str(rankrun), "-n", str(RANKS), str(ticks), str(TIMES)]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120
    )  # GDB 17 cuts a character of its warnings in MI
    assert done.returncode == 7, done.stdout + done.stderr
    assert done.stdout.count("Breakpoint 1, ") == 2 or options, done.stdout
