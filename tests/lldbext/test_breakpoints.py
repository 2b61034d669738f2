"""Breakpoints among copies: hit in every rank at the right place, copied into none; steps follow their rank.

Code is compared with the file's own bytes, by the kernel, because LLDB hides its own breakpoints.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from tests.gdbext.breakpoints.test_breakpoints import code_of
from tests.support.debuggers import holds_up_commands
from tests.support.gdb.places import RANKS, SOURCES, Places, compile_program
from tests.support.host.script import Told
from tests.support.lldb.session import Session

KERNEL_THREADS = ("rankrun",)  # their name
TURNS = 40  # of every rank, where several run at once

STOPS = """
def stop():
    thread = process.GetSelectedThread()
    frame = thread.GetFrameAtIndex(0)
    line = frame.GetLineEntry()
    return {"name": thread.GetName(), "function": frame.GetFunctionName(), "line": line.GetLine(),
            "is_start": line.GetStartAddress() == frame.GetPCAddress(), "reason": thread.GetStopReason(),
            "args": [one.GetValueAsSigned() for one in frame.GetVariables(True, False, False, False)]}

def go(most=100):
    global process
    stops = []
    ask("process launch")
    process = target.GetProcess()
    while process.GetState() == lldb.eStateStopped and len(stops) < most:
        stops.append(stop())
        process.Continue()
    return stops

def texts(path, start, size):
    with open(path, "rb") as file:
        file.seek(start)
        expected = file.read(size)
    pid = process.GetProcessID()
    original = next(int(line.split("-")[0], 16) for line in open(f"/proc/{pid}/maps") if path in line)
    bases = [original]
    for row in ask("rank where move_on").splitlines()[2:]:
        bases.append(int(row.split()[1], 16) - symbol)
    found = []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for base in bases:
            memory.seek(base + start)
            found.append(memory.read(size) == expected)
    return found
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("walks"), "walks.c")


def launch(session: Session, script: str, rankrun: Path, program: Path, *words: object) -> Told:
    return session.run(STOPS + script, "--", rankrun.resolve(), "-n", RANKS, program, *words)


def test_hit_once_per_rank_at_the_right_place(session: Session, rankrun: Path, program: Path) -> None:
    script = """
ask("breakpoint set -n work")
ask("breakpoint set -n main")
tell("stops", go())
tell("exit", process.GetExitStatus())
"""
    answers = launch(session, script, rankrun, program, "end")
    for function in ("main", "work"):
        stops = [one for one in answers["stops"] if one["function"] == function]
        assert sorted(stop["name"] for stop in stops) == [f"rank {rank}: running" for rank in range(RANKS)], (
            answers.output
        )
        assert all(stop["is_start"] for stop in stops) and len({stop["line"] for stop in stops}) == 1
        if function == "work":
            assert all(stop["name"] == f"rank {stop['args'][0]}: running" for stop in stops)
    assert len(answers["stops"]) == 2 * RANKS and answers["exit"] == 0


def test_what_replaces_gdbs_own_commands(session: Session, rankrun: Path, program: Path) -> None:
    """As docs/lldb.md has it: a breakpoint for one hit of one rank, where it comes by three times."""
    script = """
said = ask("rank break move_on 2")
tell("once", ask("breakpoint modify --one-shot true " + said.split()[1].rstrip(":")))
tell("stops", go())
tell("exit", process.GetExitStatus())
"""
    answers = launch(session, script, rankrun, program, "end")
    assert [(one["name"], one["function"]) for one in answers["stops"]] == [("rank 2: running", "move_on")], (
        answers.output
    )
    assert answers["exit"] == 0


def test_a_watchpoint_is_one_ranks(session: Session, places: Places) -> None:
    script = """
    found = []
    for rank in (1, 3):
        ask(f"rank {rank}")
        ask("watchpoint set variable shared_name")
        found.append(target.GetWatchpointAtIndex(target.GetNumWatchpoints() - 1).GetWatchAddress())
    tell("found", found)
    ask("watchpoint delete -f")
    """
    answers = session.attach(script, places.pid)
    assert answers["found"] == [places.owned[rank, "shared_name"].address for rank in (1, 3)], answers.output


def test_no_breakpoint_is_copied_or_left_in_the_original(session: Session, rankrun: Path, program: Path) -> None:
    start, size, symbol = code_of(program)
    script = f"""
global symbol
symbol = {symbol}
ask("breakpoint set -n main")
ask("breakpoint set -n move_on")
global process
ask("process launch")
process = target.GetProcess()
ask("breakpoint disable")
tell("texts", texts({str(program)!r}, {start}, {size}))
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["texts"] == [True] * (RANKS + 1), answers.output


def test_a_step_follows_its_rank(session: Session, rankrun: Path, program: Path) -> None:
    """`next` over a call that blocks: the other ranks run meanwhile."""
    script = """
global process
ask("breakpoint set -n main")
ask("process launch")
process = target.GetProcess()
ask("breakpoint disable")
found = [stop()]
for _ in range(3):
    ask("next")
    found.append(stop())
tell("found", found)
tell("rank", value("rank"))
"""
    answers = launch(session, script, rankrun, program, "end")
    lines = [one["line"] for one in answers["found"]]
    assert lines == list(range(lines[0], lines[0] + 4)), answers["found"]
    assert {one["name"] for one in answers["found"]} == {f"rank {answers['rank']}: running"}


def test_conditions_read_the_ranks_own(session: Session, rankrun: Path, program: Path) -> None:
    script = """
ask("breakpoint set -n move_on -c 'file_static == 24 && number == 1'")
tell("stops", go())
"""
    answers = launch(session, script, rankrun, program, "end")
    assert [(one["name"], one["args"]) for one in answers["stops"]] == [("rank 2: running", [2, 1])], answers.output


def test_our_own_breakpoint_is_not_listed(session: Session, rankrun: Path, program: Path) -> None:
    answers = launch(session, 'tell("list", ask("breakpoint list"))\n', rankrun, program)
    assert "list" in answers.facts and "rank_debug_event" not in answers["list"]


@pytest.mark.parametrize(
    "command, expected",
    [
        ("rank break work 1", [1]),
        ("rank break work 1-2", [1, 2]),
        ("rank break work", [0, 1, 2, 3]),
        ("rank break work if rank == 2", [2]),
        ("rank break work 0-2 if shared_name > 10", [1, 2]),
        ("rank break move_on 3 if number == 1", [3]),
    ],
)
def test_which_ranks_stop(session: Session, rankrun: Path, program: Path, command: str, expected: list[int]) -> None:
    script = f"""
tell("said", ask({command!r}))
tell("stops", go())
tell("exit", process.GetExitStatus())
"""
    answers = launch(session, script, rankrun, program, "end")
    names = sorted(one["name"] for one in answers["stops"])
    assert names == [f"rank {rank}: running" for rank in expected], answers.output
    assert answers["exit"] == 0


def test_rank_break_in_a_stopped_job(session: Session, rankrun: Path, program: Path) -> None:
    script = """
tell("first", ask("rank break main 2"))
global process
ask("process launch")
process = target.GetProcess()
found = [stop()]
tell("bad", [ask("rank break"), ask("rank break work exited"), ask("rank break no_such_file.c:1 9-x")])
ask("rank break move_on ready,blocked if number == 2")
ask("breakpoint disable 2")
process.Continue()
found.append(stop())
tell("found", found)
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["found"][0]["name"] == "rank 2: running" and answers["found"][1]["args"][1] == 2
    assert answers["bad"][0].startswith("error: no location to break at is given")
    assert answers["bad"][1].startswith("error: no rank is in exited")


def test_several_kernel_threads(session: Session, rankrun: Path, program: Path) -> None:
    """Ranks hit at the same time: each stop shows every rank on its own kernel thread.

    An LLDB that is asked by functions, as one that holds no commands up is, shows some as kernel threads at first.
    """
    script = """
ask("breakpoint set -n work")
global process
ask("process launch")
process = target.GetProcess()
found = []
for _ in range(20):
    if process.GetState() != lldb.eStateStopped:
        break
    for thread in process:
        frame = thread.GetFrameAtIndex(0)
        if frame.GetFunctionName() == "work":
            found.append([thread.GetName(), frame.FindVariable("rank").GetValueAsSigned()])
    process.Continue()
tell("found", found)
tell("exit", process.GetExitStatus())
"""
    answers = session.run(STOPS + script, "--", rankrun.resolve(), "-n", RANKS, "--pes", 3, program, "end")
    assert {rank for _, rank in answers["found"]} == set(range(RANKS)), answers.output
    shown = [name for name, _ in answers["found"] if name not in KERNEL_THREADS or holds_up_commands()]
    assert shown and shown == [f"rank {rank}: running" for name, rank in answers["found"] if name in shown], answers[
        "found"
    ]
    assert answers["exit"] == 0


def test_no_hit_is_lost_where_ranks_hit_at_once(session: Session, rankrun: Path, ticks: Path) -> None:
    """LLDB by itself hears of one rank's alone; the others would go on, past the breakpoint."""
    script = """
here = target.BreakpointCreateByName("tick")
tell("stops", go(8))
here.SetAutoContinue(True)
tell("running", [thread.GetName() for thread in process if "running" in (thread.GetName() or "")])
process.Continue()
tell("count", here.GetHitCount())
tell("exit", process.GetExitStatus())
"""
    answers = session.run(STOPS + script, "--", rankrun.resolve(), "-n", RANKS, "--pes", 3, ticks, TURNS)
    assert answers["running"], answers.output  # LLDB knows them as threads by then
    assert all(one["function"] == "tick" for one in answers["stops"]), answers["stops"]
    named = [one["name"] for one in answers["stops"][1:] if one["name"] not in KERNEL_THREADS or holds_up_commands()]
    assert all("running" in name for name in named), answers["stops"]
    assert (answers["count"], answers["exit"]) == (RANKS * TURNS, 0), answers.output
    assert answers.output.count(f" ticked {TURNS}\n") == RANKS


WALK = """
target.BreakpointCreateByName("walk").SetOneShot(True)
ask("process launch")
process = target.GetProcess()
ticks = target.BreakpointCreateByName("tick")

def walker():
    return next(one for one in process if one.GetName() == "rank 0: running")

def go_on(step):
    process.SetSelectedThread(walker())
    step(walker())
    while walker().GetStopReason() != lldb.eStopReasonPlanComplete:  # another rank has stopped before the step's end
        process.Continue()
    frame = walker().GetFrameAtIndex(0)
    return [frame.GetFunctionName(), frame.GetLineEntry().GetLine()]

lines = []
while not lines or lines[-1][0] != "main":
    lines.append(go_on(lambda thread: thread.STEP()))
    if lines[-1][0] == "work":
        lines.append(go_on(lambda thread: thread.StepOut()))
tell("lines", lines)
ticks.SetAutoContinue(True)
process.Continue()
tell("count", ticks.GetHitCount())
tell("exit", process.GetExitStatus())
"""


@pytest.mark.parametrize("step", ["StepOver", "StepInto"])
def test_no_step_goes_past_its_end_where_other_ranks_stop(
    session: Session, rankrun: Path, walks: Path, step: str
) -> None:
    """A step ends at a breakpoint of LLDB's own for one thread: the kernel thread below is none of its."""
    script = STOPS + WALK.replace("STEP", step)
    answers = session.run(script, "--", rankrun.resolve(), "-n", RANKS, "--pes", RANKS, walks, TURNS)
    source = (SOURCES / "walks.c").read_text().splitlines()
    head = next(number for number, line in enumerate(source, 1) if "for (int round" in line)
    body = [number for number, line in enumerate(source, 1) if re.fullmatch(r" {8}work\(\d+\);", line)]
    visited = [line for function, line in answers["lines"] if function == "walk"]
    within = [line for line, _ in itertools.groupby(visited)]  # back from a call it is where it was
    assert within == [*([head, *body] * 10), head, body[-1] + 2], answers.output
    assert sum(function == "work" for function, _ in answers["lines"]) == (40 if step == "StepInto" else 0)
    assert (answers["count"], answers["exit"]) == ((RANKS - 1) * TURNS, 0), answers.output


def test_the_program_can_be_run_again(session: Session, rankrun: Path, program: Path) -> None:
    script = """
ask("breakpoint set -n work")
tell("runs", [[[one["name"], one["line"]] for one in go()] for _ in range(2)])
"""
    answers = launch(session, script, rankrun, program, "end")
    first, second = answers["runs"]
    assert first == second and len(first) == RANKS, answers.output


@pytest.mark.parametrize("ranks", [1, 70])
def test_any_number_of_ranks(session: Session, rankrun: Path, program: Path, ranks: int) -> None:
    script = """
ask("breakpoint set -n work")
tell("names", [one["name"] for one in go(1000)])
tell("exit", process.GetExitStatus())
"""
    answers = session.run(STOPS + script, "--", rankrun.resolve(), "-n", ranks, program, "end")
    assert sorted(answers["names"]) == sorted(f"rank {rank}: running" for rank in range(ranks)), answers.output
    assert answers["exit"] == 0


def test_a_library_is_loaded_while_ranks_are_looked_at(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """LLDB reads its list of libraries anew then; the program's names are before theirs all the same."""
    library = tmp_path / "libmore.so"
    source = tmp_path / "more.c"
    source.write_text("int before = 99, optind = 77;\nint more(void) { return before + optind; }\n")
    subprocess.run(["cc", "-g", "-shared", "-fPIC", str(source), "-o", str(library)], check=True, timeout=60)
    loads = compile_program("rankcc", tmp_path, "loads.c")
    script = """
ask("breakpoint set -n load")
global process
ask("process launch")
process = target.GetProcess()
found = [[value("before"), value("optind"), ask("rank print optind")]]
ask("finish")
ask("rank 3")
found.append([value("before"), value("optind"), ask("rank print optind")])
ask("rank 1")
found.append([value("before"), value("optind"), printed("p optind")])
tell("found", found)
tell("more", ask("image lookup -n more"))
"""
    answers = session.run(STOPS + script, "--", rankrun.resolve(), "-n", RANKS, loads, library)
    every = "0: 4000\n1: 4000\n2: 4000\n3: 4003\n"  # only the last rank has come so far
    assert answers["found"][0] == [35, 4003, every], answers.output
    assert answers["found"][1] == [36, 4003, every], answers.output
    assert answers["found"][2] == [5, 4000, "(int) 4000\n"], answers.output
    assert "libmore.so" in answers["more"]
