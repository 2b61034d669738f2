"""Breakpoints that GDB changes amid its own work, those that scripts make, and what scripts see of ours.

All of it is done in one job, whose ranks hit breakpoints one after the other; a count is of the job, as GDB's is of a
process.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal
from tests.support.running import StartJob

TURNS = 3

TO_THE_END = """
stops = []
while gdb.selected_inferior().pid and len(stops) < 50:
    stops.append([gdb.newest_frame().name(), value("$_rank"), value("$_hit_bpnum") if gdb.VERSION > "13" else 0])
    gdb.execute("continue")
tell("stops", stops)
tell("ended", not gdb.selected_inferior().pid)
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


@pytest.mark.parametrize(
    ("command", "expected", "left"),
    [
        ("enable once 1", 1, "dis  n"),
        ("enable count 3 1", 3, "dis  n"),
        (f"enable count {RANKS * TURNS + 1} 1", RANKS * TURNS, "dis  y"),
        ("enable delete 1", 1, None),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_hits_of_all_ranks_count(
    session: Session, rankrun: Path, ticks: Path, command: str, expected: int, left: str | None, when: str
) -> None:
    """Asked before there are ranks, or in the midst; whoever hits it, GDB or one of ours in another copy."""
    before, after = (command, "echo") if when == "before" else ("echo", command)
    answers = session.run(
        f"""
gdb.execute("break tick")
gdb.execute("break main")
gdb.execute("{before}")
gdb.execute("run")
gdb.execute("delete 2")
gdb.execute("{after}")
gdb.execute("continue")
{TO_THE_END}
tell("listed", ask("info breakpoints 1"))
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["ended"] and [one[0] for one in answers["stops"]] == ["tick"] * expected, answers.output
    match = re.search(r"(?m)^1 .*? (keep|dis|del) +([yn]) ", answers["listed"])
    assert (match and f"{match[1]}  {match[2]}") == left, answers["listed"]
    assert answers.output.count(f"ticked {TURNS}") == RANKS


@pytest.mark.parametrize("kind", ["", "internal=True", "temporary=True", "internal=True, temporary=True"])
def test_what_scripts_make(session: Session, rankrun: Path, ticks: Path, kind: str) -> None:
    """Before there are ranks: not a byte of it is copied with the program, and it stops in all of them."""
    answers = session.run(
        f"""
made = gdb.Breakpoint("tick", {kind})
number = made.number
gdb.execute("run")
tell("seen", [one.number for one in gdb.breakpoints()] == ([] if "temporary" in "{kind}" else [number]))
{TO_THE_END}
tell("number", number)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["seen"] and answers["ended"], answers.output
    ranks = [rank for name, rank, _ in answers["stops"] if name == "tick"]
    if "temporary" in kind:
        assert len(answers["stops"]) == len(ranks) == 1
    else:
        assert sorted(ranks) == sorted(list(range(RANKS)) * TURNS), answers.output
        assert all(number in (0, answers["number"]) for _, _, number in answers["stops"])
    assert "SIGTRAP" not in answers.output and answers.output.count(f"ticked {TURNS}") == RANKS


def test_the_end_of_one_call(session: Session, rankrun: Path, ticks: Path) -> None:
    """A FinishBreakpoint is about one frame: no other rank stops for it."""
    answers = session.run(
        """
gdb.execute("rank tbreak tick 2")
gdb.execute("run")
made = gdb.FinishBreakpoint(gdb.newest_frame(), internal=True)
gdb.execute("continue")
tell("back", [gdb.newest_frame().name(), value("$_rank"), int(made.return_value)])
gdb.FinishBreakpoint()
gdb.execute("continue")
tell("main", [gdb.newest_frame().name(), value("$_rank")])
gdb.execute("continue")
tell("ended", not gdb.selected_inferior().pid)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["back"] == ["turn", 2, 3] and answers["main"] == ["main", 2], answers.output
    assert answers["ended"] and answers.output.count(f"ticked {TURNS}") == RANKS


def test_scripts_may_delete_all_that_they_see(session: Session, rankrun: Path, ticks: Path) -> None:
    answers = session.run(
        f"""
gdb.execute("break tick")
gdb.execute("break turn")
gdb.execute("run")
tell("seen", [one.number for one in gdb.breakpoints()])
for one in gdb.breakpoints():
    one.delete()
gdb.execute("tbreak MPI_Finalize")
gdb.execute("continue")
{TO_THE_END}
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["seen"] == [1, 2]
    assert "auto-loading has been declined" not in answers.output
    assert [one[0] for one in answers["stops"]] == ["MPI_Finalize"], answers.output


def test_scripts_hear_of_users_breakpoints_alone(session: Session, rankrun: Path, ticks: Path) -> None:
    """While the extension makes, changes and deletes many of its own."""
    answers = session.run(
        f"""
heard = []
def hear(kind):
    return lambda breakpoint: heard.append([kind, breakpoint.number])
handlers = {{kind: hear(kind) for kind in ("created", "modified", "deleted")}}
for kind, handler in handlers.items():
    getattr(gdb.events, "breakpoint_" + kind).connect(handler)
gdb.execute("break tick")
gdb.execute("run")
gdb.execute("disable 1")
gdb.execute("enable 1")
{TO_THE_END}
gdb.execute("delete 1")
tell("heard", heard)
for kind, handler in handlers.items():
    getattr(gdb.events, "breakpoint_" + kind).disconnect(handler)
count = len(heard)
gdb.execute("break main")
tell("after", len(heard) - count)
try:
    gdb.events.breakpoint_created.connect(3)
except TypeError as error:
    tell("refused", str(error))
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        1,
    )
    assert answers["heard"][0] == ["created", 1] and answers["heard"][-1] == ["deleted", 1]
    assert {number for _, number in answers["heard"]} == {1} and ["modified", 1] in answers["heard"]
    assert answers["after"] == 0 and "callable" in answers["refused"]


def test_steps_in_a_breakpoints_commands(gdb: Path, rankrun: Path, ticks: Path) -> None:
    """GDB executes what comes before the first step, and takes the step."""
    with terminal(gdb, "-ex", f"source {EXTENSION}", "--args", rankrun, "-n", RANKS, ticks, TURNS) as user:
        user.wait_for(rb"\(gdb\) $")
        for line in ("break tick", "commands", 'printf "rank %d, %ld\\n", $_rank, ticks', "step", "step", "end"):
            user.type(line + "\n")
            user.wait_for(rb"(\(gdb\) |>)$")
        for count in range(4):
            shown = user.ask("run" if count == 0 else "continue")
            assert re.search(r"(?s)Breakpoint 1, tick.*rank \d, \d\r\n23\t", shown), shown
        rank, ticked = re.findall(r"rank (\d), (\d)", shown)[-1]
        assert f"= {rank}\r" in user.ask("print $_rank") and f"= {int(ticked) + 1}\r" in user.ask("print ticks")


def test_of_one_breakpoint_others_hits_are_not_shown(gdb: Path, rankrun: Path, ticks: Path) -> None:
    """As GDB itself shows: those that the user has asked for."""
    with terminal(gdb, "-ex", f"source {EXTENSION}", "--args", rankrun, "-n", RANKS, ticks, TURNS) as user:
        user.wait_for(PROMPT)
        for line in ("break tick", "break turn", "run", "continue", "continue", "continue"):
            user.ask(line)
        hits = {
            line: re.findall(r"Breakpoint (\d) already hit", user.ask(line))
            for line in ("info breakpoints", "info b 1", "i b 2", "info break 1-2", "info breakpoints $bpnum", "i b 3")
        }
    assert hits == {
        "info breakpoints": ["1", "2"],
        "info b 1": ["1"],
        "i b 2": ["2"],
        "info break 1-2": ["1", "2"],
        "info breakpoints $bpnum": ["2"],
        "i b 3": [],
    }


def test_gdb_names_the_user_s_breakpoint_alone(session: Session, rankrun: Path, ticks: Path) -> None:
    """In the rank whose symbols it has, where it stops by itself: not one of ours at the same place."""
    answers = session.run(
        """
gdb.execute("rank break tick 0")
gdb.breakpoints()[0].silent = True
gdb.execute("run")
tell("first", [ask("info program"), value("$_hit_bpnum") if gdb.VERSION > "13" else 1])
told_of = ask("continue 1")
tell("ignored", told_of)
gdb.execute("kill")
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    about, number = answers["first"]
    assert "stopped at breakpoint 1.\n" in about and about.count("It stopped") == 1, about
    assert number == 1
    assert "breakpoint -" not in answers["ignored"]


@pytest.mark.parametrize("is_second", [False, True], ids=["first-run", "second-run"])
def test_no_stop_is_lost_where_gdb_finds_no_library(
    session: Session, rankrun: Path, ticks: Path, tmp_path: Path, is_second: bool
) -> None:
    """GDB knows none of the runtime's functions below a system root without libraries: memory tells where they are."""
    answers = session.run(
        f"""
gdb.execute("break tick")
if {is_second}:
    gdb.execute("run")
gdb.execute("set sysroot {tmp_path}/nothing")
gdb.execute("run")
{TO_THE_END}
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["ended"], answers.output
    assert sorted(rank for _, rank, _ in answers["stops"]) == sorted([*range(RANKS)] * TURNS), answers.output
    assert all(function == "tick" for function, _, _ in answers["stops"])


def test_a_core_of_a_job_that_was_launched(session: Session, rankrun: Path, ticks: Path, tmp_path: Path) -> None:
    """GDB reads all breakpoints anew as it opens the core file, and had one pending."""
    answers = session.run(
        f"""
gdb.execute("break tick")
gdb.execute("run")
rank = value("$_rank")
gdb.execute("gcore {tmp_path}/core")
gdb.execute("kill")
gdb.execute("core-file {tmp_path}/core")
told_ranks = ask("rank list")
tell("ranks", told_ranks)
tell("shown", ask(f"rank bt {{rank}}"))
tell("breakpoints", len(gdb.breakpoints()))
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert len(answers["ranks"].splitlines()) == RANKS + 1 and "tick (" in answers["shown"], answers.output
    assert answers["breakpoints"] == 1


def test_a_core_file_gets_no_breakpoints_of_ours(session: Session, places: object, core: Path, rankrun: Path) -> None:
    answers = session.run(
        """
gdb.execute("break work")
tell("locations", len(gdb.breakpoints()[0].locations) if hasattr(gdb.Breakpoint, "locations") else 1)
tell("internal", [line for line in ask("maint info breakpoints").splitlines() if line.startswith("-")])
""",
        rankrun,
        core,
    )
    assert answers["locations"] == 1
    assert not [line for line in answers["internal"] if " breakpoint " in line and "rank_debug_event" not in line]


def test_a_breakpoint_at_an_address_stops_in_the_next_run(session: Session, rankrun: Path, ticks: Path) -> None:
    """GDB disables it where the expression has no value yet; one that the user has disabled stays so."""
    answers = session.run(
        f"""
gdb.execute("break turn")
gdb.execute("run")
for command in ("break *tick", "break *tick+4", "disable 3", "disable 1", "run"):
    ask(command)
{TO_THE_END}
tell("enabled", [one.enabled for one in gdb.breakpoints()])
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["ended"] and answers["enabled"] == [False, True, False], answers.output
    assert {function for function, _, _ in answers["stops"]} == {"tick"}
    assert sorted(rank for _, rank, _ in answers["stops"]) == sorted([*range(RANKS)] * TURNS), answers.output


def test_a_hardware_breakpoint_at_a_variable_is_the_user_s_will(session: Session, rankrun: Path, ticks: Path) -> None:
    """It is the processor's, in the rank that was meant; none of ours stands in other ranks' variables."""
    answers = session.run(
        f"""
gdb.execute("break tick")
gdb.execute("run")
tell("said", [ask("hbreak *(char *)&ticks"), gdb.breakpoints()[1].enabled])
listed = ask("maint info breakpoints")
own, places = value("(long)&ticks"), [value(f'(long)$_rankaddr("ticks", {{number}})') for number in range({RANKS})]
tell("places", [[place == own, f"0x{{place:016x}}" in listed] for place in places])
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    said, is_enabled = answers["said"]
    assert "Hardware assisted breakpoint" in said and "disabled" not in said and is_enabled, answers.output
    assert sorted(answers["places"]) == [[False, False]] * (RANKS - 1) + [[True, True]], answers.output


TURNS_ON = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int part(int turn) {
    return turn + 1;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    puts("ready");
    fflush(stdout);
    for (int turn = 0;; turn++) {
        part(turn);
        usleep(1000); /* so that a test on a busy machine does not take a core */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
"""


@pytest.mark.parametrize("begin", ["run", "attach"])
def test_a_condition_that_comes_before_the_ranks(
    session: Session, rankrun: Path, tmp_path: Path, start_job: StartJob, begin: str
) -> None:
    """In a process GDB knows the function from the start; here it would disable the breakpoint for good."""
    (tmp_path / "turns.c").write_text(TURNS_ON)
    command = [str(rankrun.with_name("rankcc")), "-g", "-O0", str(tmp_path / "turns.c"), "-o", str(tmp_path / "turns")]
    subprocess.run(command, check=True, timeout=60)
    program = [rankrun, "-n", RANKS, tmp_path / "turns"]
    words = ["--args", *program]
    if begin == "attach":
        job = start_job(*program)
        job.wait_for("ready", RANKS)
        begin, words = f"attach {job.pid}", []
    answers = session.run(
        f"""
gdb.execute("set $unwanted = -1")
gdb.execute("break part")
gdb.execute("condition 1 turn % 3 == 1 && $_rank != $unwanted")
gdb.execute("{begin}")
if "{begin}" != "run":  # a hit that GDB counts itself would be news of the breakpoint
    gdb.execute("set $unwanted = $_rank")
unwanted = value("$unwanted")
stops = []
while len(stops) < {2 * RANKS}:
    if gdb.newest_frame().name() == "part" and value("$_rank") != unwanted:
        stops.append([value("$_rank"), value("turn") % 3])
    gdb.execute("continue")
tell("stops", stops)
tell("unwanted", unwanted)
ask("kill")
""",
        *words,
    )
    assert {turn for _, turn in answers["stops"]} == {1}
    assert {rank for rank, _ in answers["stops"]} == set(range(RANKS)) - {answers["unwanted"]}, answers["stops"]
