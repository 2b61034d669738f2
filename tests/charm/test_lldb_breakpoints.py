"""LLDB's breakpoints in ranks of AMPI, stock and with the hook: hit in every rank, copied into none, sent nowhere.

As test_breakpoints.py has it for GDB: the program's own sums and values tell whether an instruction was skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.charm.test_breakpoints import RANKS, SOURCE, TURNS
from tests.charm.test_lldb import LLDB
from tests.support.charm.jobs import AMPICC, COPIES, METHODS, build, gated, turns_of
from tests.support.host.script import Told
from tests.support.lldb.session import Session

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.skipif(not LLDB, reason="LLDB is not installed"),
    pytest.mark.timeout(900),
]
HITS = """
def hits(names):
    "Goes on to the end; tells what it stopped at otherwise, and what any thread had received at any stop."
    found, others, signals, count = [], [], [], 0
    while process.GetState() == lldb.eStateStopped and count < 100:
        name, count = process.GetSelectedThread().GetName(), count + 1
        signals += [one.GetStopReasonDataAtIndex(0) for one in process if one.GetStopReason() == lldb.eStopReasonSignal]
        if name.startswith("rank "):
            found.append([name, *map(value, names)])
        else:
            others.append([name, *(one.GetStopDescription(200) for one in process)])
        process.Continue()
    tell("others", others)
    tell("signals", signals)
    return found
"""


def sums(text: str) -> list[tuple[str, str]]:
    return sorted(re.findall(r"SUM (\d) (\d+)\r?$", text, re.MULTILINE))


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
@pytest.mark.parametrize("method", METHODS)
def test_a_breakpoint_from_before_the_start_is_hit_once_in_every_rank(
    method: str, with_hook: bool, tmp_path: Path
) -> None:
    build(tmp_path, method, "c", with_hook, SOURCE)
    script = """
global process
ask("breakpoint set -n leaf")
ask("process launch -o out")
process = target.GetProcess()
tell("hits", hits(["n"]))
tell("exit", [process.GetState() == lldb.eStateExited, process.GetExitStatus()])
"""
    answers = Session(Path(LLDB), tmp_path).run(HITS + script, "--", tmp_path / "prog", f"+vp{RANKS}")
    assert answers["others"] == [] and answers["signals"] == [], answers.output
    assert answers["exit"] == [True, 0], answers.output
    expected = [[f"rank {rank}: running", turn] for rank in range(RANKS) for turn in range(1, TURNS + 1)]
    assert sorted(answers["hits"]) == expected, answers.output
    if method != "none":  # all add to one variable there, and leave it meanwhile
        assert sums((tmp_path / "out").read_text()) == [(str(one), "6") for one in range(RANKS)]


@pytest.mark.parametrize("with_hook", [False, True], ids=["stock", "hook"])
@pytest.mark.parametrize("method", COPIES)
def test_ranks_that_migrate_leave_their_breakpoints_behind(method: str, with_hook: bool, tmp_path: Path) -> None:
    """LLDB has one of two processes; its ranks leave with a breakpoint in their code, come back, and leave again."""
    build(tmp_path, method, "gated.c", with_hook)
    source = (tmp_path / "prog.gated.c").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "lost |=" in text)
    script = f"""
ask("breakpoint set -f prog.gated.c -l {line}")
open({str(tmp_path / "go")!r}, "w").close()
process.Continue()
tell("hits", hits(["turn", "g_rank"]))
tell("exit", [process.GetState() == lldb.eStateExited, process.GetExitStatus()])
"""
    with gated(tmp_path, 4) as (job, processes):
        attached = min(processes)
        told: Told = Session(Path(LLDB), tmp_path).attach(HITS + script, attached)
        turns = turns_of(job)
    assert told["others"] == [] and told["signals"] == [], told.output
    assert len(turns) == 4 * TURNS, told.output
    expected = sorted([f"rank {rank}: running", turn, rank] for turn, rank, pid in turns if pid == attached)
    assert sorted(told["hits"]) == expected, told.output
    assert told["exit"][0], told.output
