"""dprintf, of which GDB's Python tells nothing: it prints in every rank, and stops none."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.places import SOURCES, compile_program
from tests.support.gdb.session import Session
from tests.support.running import built

RANKS = 3
TURNS = 2
ALL = [(rank, turn) for rank in range(RANKS) for turn in range(TURNS)]
SET = r'dprintf tick, "here %d %ld\\n", rank, ticks'


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


def printed(output: str) -> list[tuple[int, int]]:
    return sorted((int(rank), int(count)) for rank, count in re.findall(r"here (\d+) (\d+)", output))


@pytest.mark.parametrize("style", ["gdb", "call"])
def test_it_prints_in_every_rank(session: Session, rankrun: Path, ticks: Path, style: str) -> None:
    """From before the start, where it must not be copied with the code; and again in a second run."""
    command = [str(rankrun), "-n", str(RANKS), str(ticks), str(TURNS)]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    script = f"""
ask("set dprintf-style {style}")
ask({SET!r})
tell("said", [ask("run"), ask("run")])
tell("status", str(gdb.parse_and_eval("$_exitcode")))
"""
    answers = session.run(script, "--args", *command)
    assert answers["status"] == "0", answers.output
    assert printed("".join(answers["said"]) + answers.output) == sorted(2 * ALL), answers["said"]
    assert all(answers.output.count(line) == 2 for line in alone.stdout.splitlines()), answers.output


@pytest.mark.parametrize(
    "change, expected",
    [
        ("condition 2 rank != 0 && ticks == 1", [(rank, 1) for rank in range(1, RANKS)]),
        ("disable 2", []),
        ("delete 2", []),
        ("condition 2 $_rank == 2", [(2, 0), (2, 1)]),
    ],
)
def test_what_users_change_holds_in_every_rank(
    session: Session, rankrun: Path, ticks: Path, change: str, expected: list[tuple[int, int]]
) -> None:
    script = f"""
ask("tbreak turn")
ask("run")
ask({SET!r})
ask({change!r})
tell("said", ask("continue"))
tell("status", str(gdb.parse_and_eval("$_exitcode")))
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, ticks, TURNS)
    assert answers["status"] == "0", answers.output
    assert printed(answers["said"]) == expected


def test_a_name_that_is_missing_stops_nothing(session: Session, rankrun: Path, ticks: Path) -> None:
    script = r"""
ask("break turn")
ask("run")
ask('dprintf tick, "%d\\n", rank')
ask("delete 1")
ask("tbreak MPI_Finalize")
tell("said", ask("continue"))
tell("at", gdb.newest_frame().name())
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, ticks, TURNS)
    assert answers["at"] == "MPI_Finalize", answers["said"]


def test_it_goes_on_in_the_next_run(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """GDB disables a dprintf whose function it finds nowhere, as between two runs (libstdc++ has one of the name)."""
    source = (SOURCES / "ticks.c").read_text()
    (tmp_path / "counts.c").write_text(source.replace("tick(", "increment("))
    program = tmp_path / "counts"
    command = [str(built("rankcc")), "-g", "-O0", str(tmp_path / "counts.c"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120)
    answers = session.run(
        """
gdb.execute("tbreak main")
gdb.execute("run")
gdb.execute('dprintf increment,"PASSED %d\\\\n",rank')
for _ in range(2):
    gdb.execute("run")
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
        2,
    )
    passed = sorted(int(number) for number in re.findall(r"PASSED (\d+)", answers.output))
    assert passed == sorted([*range(RANKS)] * 4), answers.output


def test_it_prints_beside_breakpoints_that_go_on(session: Session, rankrun: Path, ticks: Path, tmp_path: Path) -> None:
    """What a breakpoint's commands run GDB shows, too: it is not in the midst of a command of ours."""
    script = tmp_path / "goes-on.gdb"
    script.write_text(f"{SET.replace(chr(92) * 2, chr(92))}\nbreak turn\ncommands\n  continue\nend\nrun\n")
    answers = session.run(
        f"""
gdb.execute("tbreak main")
gdb.execute("run")
gdb.execute("source {script}")
tell("ended", not gdb.selected_inferior().pid)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["ended"] and printed(answers.output) == ALL, answers.output
