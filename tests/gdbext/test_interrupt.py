"""Commands over many ranks tell how far they are, and Ctrl-C ends them: GDB goes on as before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS as FEW
from tests.support.gdb.places import Places, compile_program, hold
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal
from tests.support.running import StartJob

RANKS, MANY = 300, 1000
CONTROL_C = "\x03"
BAR = rb"Rank (\d+) of (\d+) \[#* *\]"
# A command that takes more than a second for all of them on any machine
LONG = "define long\nset $turn = 0\nwhile $turn < 50\ninfo locals\nset $turn = $turn + 1\nend\nend\n"

# A real signal to GDB itself, from the middle of what the command does for one of the ranks
INTERRUPT = """
import os, signal
from gdbext import extension
from gdbext.selection.debugger import GdbDebugger
from gdbext.gdb_api.progress import Progress

debugger, counted, seen = extension._extension.debugger, Progress.counted, []

def interrupting(progress, numbers):
    for number in counted(progress, numbers):
        seen.append(number)
        if len(seen) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        yield number

def interrupted(command):
    try:
        return gdb.execute(command, to_string=True)
    except KeyboardInterrupt:
        return "interrupted"

Progress.counted = interrupting
gdb.execute("rank 7")
found = {}
for command in commands:
    seen.clear()
    found[command] = [
        interrupted(command), len(seen), ask("rank"), ask("print table[0]"), ask("rank print table[0] 5"), ask("bt 1"),
        interrupted("rank apply 3-9 print table[0]"), len(gdb.objfiles()),
    ]
tell("found", found)
"""
COMMANDS = (
    "rank apply all print table[0]",
    "rank apply all bt",
    "rank apply all bt full",
    "rank bt all",
    "rank tree",
    "rank print table[0] all",
    "rank diff table[0]",
    "rank list",
)


def many(start_job: StartJob, rankrun: Path, program: Path, ranks: int = RANKS) -> int:
    return hold(start_job(rankrun, "-n", ranks, "--stack-size", "65536", program)).pid


def test_a_signal_in_the_middle(session: Session, start_job: StartJob, rankrun: Path, program: Path) -> None:
    script = f"commands = {COMMANDS}\n{INTERRUPT}"
    found = session.attach(script, many(start_job, rankrun, program))["found"]
    objfiles = {answers[-1] for answers in found.values()}
    for command, (said, count, rank, variable, printed, frame, applied, _) in found.items():
        assert said == "interrupted", f"{command}: {said[-300:]}"
        assert 20 <= count <= 21, f"{command} went on to {count} ranks"
        assert rank.startswith("Rank 7 is selected because you asked for it"), f"{command}: {rank}"
        assert variable.endswith("= 700\n") and "5: 500" in printed and frame.count("#") == 1, f"{command}: {variable}"
        assert re.findall(r"= (\d+)$", applied, re.MULTILINE) == [f"{number}00" for number in range(3, 10)], (
            f"{command}: {applied}"
        )
    assert len(objfiles) == 1, "symbols were left behind"


def test_progress_and_control_c(gdb: Path, start_job: StartJob, rankrun: Path, program: Path) -> None:
    """As a user: the bar appears, Ctrl-C ends the command, the next one works."""
    job = many(start_job, rankrun, program, MANY)
    with terminal(gdb, "-p", job, "-ex", f"source {EXTENSION}") as user:
        user.wait_for(PROMPT)
        user.type(LONG)
        user.wait_for(PROMPT)
        user.type("rank apply all long\n")
        bar = user.wait_for(BAR)
        assert 0 < int(bar.group(1)) < int(bar.group(2)) == MANY
        user.type(CONTROL_C)
        user.wait_for(rb"Quit\r\n" + PROMPT)
        assert b"[#" not in user.written.rpartition(b"\r")[2], "the bar was left on the screen"
        user.type("rank apply 3-4 print table[0]\n")
        user.wait_for(PROMPT)
        assert re.findall(rb"= (\d+)", user.written) == [b"300", b"400"], user.written


@pytest.mark.parametrize("function", ["watch_events", "take"])
def test_sourcing_is_interrupted(session: Session, places: Places, function: str) -> None:
    """As the commands are made known to GDB, and as ranks are read: sourcing again leaves one extension, not two."""
    script = f"""
import signal

def interrupt(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "{function}":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(interrupt)
try:
    tell("first", ask("source {EXTENSION}"))
except KeyboardInterrupt:
    tell("first", "error: interrupted")
sys.setprofile(None)
tell("second", ask("source {EXTENSION}"))
tell("stacks", [ask(f"rank bt {{rank}}") for rank in range({FEW})])
tell("rank", [ask("rank 1"), ask("bt")])
stops = []

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "_stopped":
        stops.append(1)

gdb.execute("rank {FEW - 1}")
sys.setprofile(note)
gdb.execute("stepi")
sys.setprofile(None)
tell("heard of the stop", len(stops))
"""
    answers = session.run(script, "-p", places.pid, source=False)
    assert "interrupted" in answers["first"] or "KeyboardInterrupt" in answers["first"], answers["first"]
    assert "error" not in answers["second"] and answers["heard of the stop"] == 1
    assert all("main (" in stack and "can't be unwound" not in stack for stack in answers["stacks"]), answers["stacks"]
    assert "main (" in answers["rank"][1] and "Traceback" not in answers["rank"][0] + answers["rank"][1]


INTERRUPTING = """
import signal

def interrupt_at(function, times=1):
    "Ctrl-C as a function of ours is called for the so manyth time."
    seen = []

    def interrupt(frame, event, argument):
        if event == "call" and frame.f_code.co_name == function:
            seen.append(1)
            if len(seen) == times:
                sys.setprofile(None)
                os.kill(os.getpid(), signal.SIGINT)

    sys.setprofile(interrupt)

def stops():
    "The ranks that GDB stops from here to the end, and where."
    found = []
    while gdb.selected_inferior().pid:
        found.append([value("$_rank"), gdb.newest_frame().name()])
        ask("continue")
    return found
"""


def skip_if_the_program_gets_the_signal() -> None:
    if gdb_version() >= (14, 0):
        pytest.skip("from GDB 14 on, Ctrl-C amid an event of GDB's reaches the program as SIGINT")


def test_while_a_condition_is_tested(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """GDB itself takes the condition for true then, and stops; so it does for a rank that has no copy in focus."""
    skip_if_the_program_gets_the_signal()
    ticks = compile_program("rankcc", tmp_path, "ticks.c")
    script = f"""
{INTERRUPTING}
ask("break tick if ticks == 99")
interrupt_at("_is_true")
tell("said", ask("run"))
tell("bt", ask("bt 1"))
tell("hits", value("$_rank_hits(1)"))
tell("stops", stops())
"""
    answers = session.run(script, "--args", rankrun, "-n", FEW, ticks, 3)
    assert "Error in testing condition for breakpoint 1:\nQuit\n" in answers.output + answers["said"], answers.output
    rank = answers["stops"][0][0]
    assert f"Rank {rank} hit Breakpoint 1, tick (rank={rank})" in answers["said"] and "Python" not in answers.output
    assert f"tick (rank={rank})" in answers["bt"] and answers["hits"] == 1
    assert answers["stops"] == [[rank, "tick"]]


def check_that_others_stop(stops: list[list[object]]) -> None:
    """Every rank at the breakpoint, but the first, which is in that function already."""
    first, *others = stops
    assert sorted(others) == [[rank, "work"] for rank in range(FEW) if rank != first[0]], stops


@pytest.mark.parametrize("function", ["uninterrupted", "share_out"])
def test_while_ranks_get_a_breakpoint(session: Session, rankrun: Path, program: Path, function: str) -> None:
    """Some of them have it, others not: it is disabled for all, and GDB's user is told how to have it."""
    script = f"""
{INTERRUPTING}
ask("break move_on if number == 0")
ask("run")
ask("delete 1")
interrupt_at("{function}", 2)
tell("said", ask("break work"))
(user,) = [one for one in gdb.breakpoints() if one.visible]
tell("enabled", user.enabled)
internal = [line for line in ask("maint info breakpoints").splitlines() if line.startswith("-")]
standing = ("rank_debug_event", "_dl_debug_state")
tell("ours", len([line for line in internal if " breakpoint " in line and not any(each in line for each in standing)]))
ask("enable")
tell("stops", stops())
"""
    answers = session.run(script, "--args", rankrun, "-n", FEW, program, "end")
    sentence = "[Breakpoint 2 is disabled, interrupted before all ranks had it: `enable 2`]\n"
    assert sentence in answers["said"] + answers.output and "Python" not in answers.output, answers.output
    assert answers["enabled"] is False and answers["ours"] == 0
    check_that_others_stop(answers["stops"])


def test_while_ranks_are_made(session: Session, rankrun: Path, program: Path) -> None:
    """What is begun at an event is ended: GDB stops behind it, and no rank misses a breakpoint."""
    skip_if_the_program_gets_the_signal()
    script = f"""
{INTERRUPTING}
ask("break work")
interrupt_at("arrived")
tell("said", ask("run"))
tell("stops", stops())
"""
    answers = session.run(script, "--args", rankrun, "-n", FEW, program, "end")
    assert "Interrupted." in answers["said"] + answers.output and "Python" not in answers.output, answers.output
    first, *others = answers["stops"]
    assert first[1] != "work" and sorted(others) == [[rank, "work"] for rank in range(FEW)], answers["stops"]
