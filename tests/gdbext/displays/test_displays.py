"""`display` goes on from rank to rank as in a process, and tells the rank that has stopped, never the one before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.gdb.breakpoint_walk import RANKS as WALKERS
from tests.support.gdb.breakpoint_walk import Programs
from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("displays"), "ticks.c")


def test_displays_follow_the_rank_that_stops(session: Session, rankrun: Path, ticks: Path) -> None:
    """At breakpoints, watched variables and steps, in silence too; those of another function wait for theirs.

    What is shown without pretty-printers stays so; to find out which does, nothing is evaluated that changes the
    program (of scripts GDB evaluates no display before it shows it).
    """
    answers = session.run(
        """
class Mixed:
    def to_string(self):
        return "printed"
gdb.execute("break tick")
gdb.execute("run")
gdb.execute("display $_rank * 100")
gdb.execute("display/x rank + 16")
gdb.execute("display ticks")
gdb.execute("disable display 3")
gdb.pretty_printers.append(lambda value: Mixed() if value.type.code == gdb.TYPE_CODE_STRUCT else None)
for command in ("display/r mixed", "display mixed", "display/rx mixed", "display level += 2"):
    gdb.execute(command)
tell("unchanged", [value("$_rank"), value("level")])
gdb.execute("undisplay 7")
first = value("$_rank")
stops = []
for _ in range(4):
    said = ask("continue")
    stops.append([value("$_rank"), said])
tell("stops", stops)
here = value("$_rank")
tell("stepped", [here, ask("next")])
other = next(rank for rank in range(4) if rank != here)
gdb.execute(f"rank {other}")
tell("elsewhere", ask("info display"))
gdb.execute(f"rank {here}")
tell("back", ask("info display"))
gdb.breakpoints()[0].silent = True
tell("silent", ask("continue"))
gdb.breakpoints()[0].delete()
gdb.execute("enable display")
watched = (value("$_rank") + 2) % 4
gdb.execute(f"rank watch ticks {watched}")
tell("watched", [watched, ask("continue"), value("$_rank"), value("ticks")])
gdb.execute("undisplay")
tell("none", ask("info display"))
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        3,
    )
    for rank, said in answers["stops"]:
        assert re.findall(r"\d+: (.*?) = (.*)", said) == [
            ("$_rank * 100", f"{100 * rank}"),
            ("/x rank + 16", hex(rank + 16)),
            ("mixed", f"{{letter = 120 'x', numbers = {{7, {8 + rank}, 9}}}}"),
            ("mixed", "printed"),
            ("/x mixed", f"{{letter = 0x78, numbers = {{0x7, {8 + rank:#x}, 0x9}}}}"),
        ]
    assert answers["unchanged"][0] == answers["unchanged"][1]
    assert len({one[0] for one in answers["stops"]}) > 1
    here, said = answers["stepped"]
    assert f"$_rank * 100 = {100 * here}\n" in said and said.count("$_rank * 100") == 1
    assert "/x rank + 16 (cannot be evaluated in the current context)" in answers["elsewhere"]
    listed = re.findall(r"\d+:   ([yn])  (.*)", answers["back"])
    assert listed == [
        ("y", "$_rank * 100"),
        ("y", "/x rank + 16"),
        ("n", "ticks"),
        ("y", "mixed"),
        ("y", "mixed"),
        ("y", "/x mixed"),
    ]
    assert " = " not in answers["silent"]
    watched, said, rank, ticks_now = answers["watched"]
    assert rank == watched
    assert re.findall(r"\d+: ticks = (.*)", said) == [str(ticks_now)], said
    assert re.findall(r"\d+: \$_rank \* 100 = (.*)", said) == [str(100 * rank)], said
    assert answers["none"] == "There are no auto-display expressions now.\n"


KINDS = (
    *("display paced", "display/x pacer + 16", "display turn * 2", "display/2dw &pacer", "display/i $pc"),
    *("display/c 64 + pacer", "disp/a &paced", "display/2xb &pacer", "display/f 1.5", "display/z pacer"),
    *("disp/rd pacer", 'display/s "text"', "display/t pacer", "display/-2xw &pacer", "display/y pacer"),
    *("display/x", "display pacer +"),
)
CHANGES = ("undisplay 2", "disable display 4-5", "display paced + pacer", "undisplay 17 x", "display no_such_name")
SHOWN = f"""
import re
answers = []
def note(said):
    said = re.sub("0x[0-9a-f]+", "ADDRESS", said)
    answers.append(re.findall(r"(?m)^\\d+: .*|^Num .*|^No display.*|^There are .*|^.*Unable.*", said))
gdb.execute("break pace_up")
gdb.execute("break pace_down")
gdb.execute("run")
for command in {KINDS}:
    note(ask(command))
for _ in range(3):
    note(ask("continue"))
note(ask("info display"))
for command in {CHANGES}:
    note(ask(command))
for _ in range(4):
    note(ask("continue"))
note(ask("up"))
note(ask("display"))
note(ask("info display"))
gdb.execute("enable display 4")
gdb.execute("delete 1 2")
gdb.execute("tbreak pace_about")
note(ask("run"))
note(ask("next"))
note(ask("info display"))
note(ask("delete display"))
note(ask("info display"))
tell("answers", answers)
tell("help", [ask("help " + command) for command in ("display", "undisplay", "info display", "delete display")])
"""


def test_displays_are_a_process_s_in_all_that_can_be_done_with_them(
    session: Session, rankrun: Path, tmp_path: Path
) -> None:
    """Numbers, order, forms, scopes and answers, while symbols move from rank to rank and to another run."""
    programs = Programs.build(tmp_path)
    alone = session.run(SHOWN, "--args", programs.alone, 3, source=False)
    job = session.run(SHOWN, "--args", rankrun, "-n", WALKERS, programs.job, 3)
    assert "ranklens failed" not in job.output, job.output
    assert len(job["answers"]) == 38 and sum(map(bool, alone["answers"])) >= 15
    for number, (expected, shown) in enumerate(zip(alone["answers"], job["answers"])):
        assert shown == expected, (number, job.output)
    assert job["help"] == alone["help"]


def test_displays_of_a_breakpoint_with_commands(gdb: Path, rankrun: Path, ticks: Path) -> None:
    """They are shown before the user's commands run, which GDB keeps, in each rank under the same number."""
    with terminal(gdb, "-ex", f"source {EXTENSION}", "--args", rankrun, "-n", RANKS, ticks, 2) as user:
        user.wait_for(PROMPT)
        user.ask("break tick")
        user.ask("run")
        user.ask("display ticks + 0 * $_rank")
        user.type("commands 1\n")
        user.wait_for(rb">$")
        user.type('printf "in rank %d\\n", rank\n')
        user.wait_for(rb">$")
        user.ask("end")
        said = [user.ask("continue") for _ in range(2 * RANKS - 1)]
    shown = [re.findall(r"(?m)^(\d+: ticks \+ 0 \* \$_rank = \d)\r?\n(?:.*\n)*?in rank (\d)", text) for text in said]
    assert all(len(pairs) == 1 and pairs[0][0].startswith("1: ") for pairs in shown), said
    assert {int(pairs[0][1]) for pairs in shown} == set(range(RANKS)), said
