"""GDB that starts a job, as smpirun offers it: breakpoints from before the start, of single ranks, and a deadlock."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.running import ROOT
from tests.support.sharing import Shared
from tests.support.smpi.jobs import FACTORIES, SOURCES, built, command, lacks, needs_smpi

pytestmark = [needs_smpi, pytest.mark.timeout(900)]
RANKS, TURNS = 3, 3
EXTENSION = ROOT / "gdbext" / "rank.py"
HIT = re.compile(r"^(?:Rank \d hit |Thread .* hit )?Breakpoint 1(?:\.\d+)?, ", re.MULTILINE)
DEADLOCK = "simgrid::kernel::EngineImpl::display_all_actor_status"


def debugged(folder: Path, program: Path, commands: Sequence[str], *options: str, is_own: bool = False) -> str:
    """What a GDB says that smpirun starts: by `-wrapper`, or by its own option `-gdb`, which has no place for words."""
    script = folder / "commands"
    start = ["set debuginfod enabled off", "set breakpoint pending on", "set pagination off", "set confirm off"]
    script.write_text("\n".join([*start, f"source {EXTENSION}", *commands, "quit"]) + "\n")
    how = ["-gdb"] if is_own else ["-wrapper", f"gdb -nx -q -x {script} --args"]
    done = subprocess.run(
        command(folder, RANKS, program, *how, *options),
        cwd=folder,
        input=f"source {script}\n" if is_own else "",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    if is_own:  # then SimGrid keeps the copies of the program's file, whatever TMPDIR says
        for process in re.findall(r"\(process (\d+)\) exited", done.stdout):
            for copy in Path("/tmp").glob(f"*_{process}_[0-9]*.so"):
                copy.unlink()
    return done.stdout


def values_in(said: str) -> list[int]:
    return [int(one) for one in re.findall(r"\$\d+ = (-?\d+)$", said, re.MULTILINE)]


WAYS = {  # GDB's start, and options of SimGrid's
    "wrapper": [],
    "own option": [],
    **{factory: [f"--cfg=contexts/factory:{factory}"] for factory in FACTORIES if factory != "raw"},
    "mmap": ["--cfg=smpi/privatization:mmap"],
}


@pytest.mark.parametrize("how", WAYS)
def test_a_breakpoint_from_before_the_start_is_hit_once_in_every_rank(how: str, shared: Shared, tmp_path: Path) -> None:
    if lacks(how):
        pytest.skip("this SimGrid has no contexts of this kind")
    stops = [word for _ in range(RANKS * TURNS) for word in ("print $_rank", "print g_rank", "print n", "continue")]
    program = built(shared, "sums.c")
    said = debugged(tmp_path, program, ["break leaf", "run", *stops], *WAYS[how], is_own=how == "own option")
    check_hits(said)


@pytest.mark.parametrize("language", ["cpp", "f90"])
def test_breakpoints_from_before_the_start_in_other_languages(language: str, shared: Shared, tmp_path: Path) -> None:
    """All hits, and then those by a condition on each rank's own variable."""
    stops = [word for _ in range(RANKS * TURNS) for word in ("print $_rank", "print g_rank", "print n", "continue")]
    program = built(shared, f"sums.{language}")
    check_hits(debugged(tmp_path, program, ["break own::leaf", "run", *stops]))
    stops = [word for _ in range(TURNS) for word in ("print $_rank", "print n", "continue")]
    equals = ".eq." if language == "f90" else "=="
    said = debugged(tmp_path, program, [f"break own::leaf if g_rank {equals} 2", "run", *stops])
    check_condition(said)


def test_conditions_in_fortran_are_read_as_those_of_a_process(shared: Shared, tmp_path: Path) -> None:
    """GDB begins with a process in the language of its program, and goes on in the frame's; so it is when run again."""
    program = built(shared, "sums.f90")
    again = ["delete", "break own::leaf if mod(g_rank, 2) .eq. 1", "run", "print $_rank", "print n"]
    commands = ["show language", "break own::leaf", "run", "show language", *again, "delete", "continue"]
    said = debugged(tmp_path, program, commands)
    languages = re.findall(r'The current source language is "(.*)"', said)
    assert languages == ["fortran", "auto; currently fortran"] and values_in(said) == [1, 1], said
    assert "Error" not in said


def check_hits(said: str) -> None:
    values = values_in(said)
    hits = sorted(zip(values[::3], values[1::3], values[2::3]))
    assert hits == [(rank, rank, turn) for rank in range(RANKS) for turn in range(1, TURNS + 1)], said
    check_sums(said)


def check_condition(said: str) -> None:
    values = values_in(said)
    assert list(zip(values[::2], values[1::2])) == [(2, turn) for turn in range(1, TURNS + 1)], said
    check_sums(said)


def check_sums(said: str) -> None:
    """No rank has lost an instruction."""
    assert sorted(re.findall(r"SUM (\d) (\d+)$", said, re.MULTILINE)) == [(str(one), "6") for one in range(RANKS)]
    assert "exited normally" in said and "ranklens failed" not in said


@pytest.mark.parametrize("privatization", ["dlopen", "mmap"])
def test_a_condition_from_before_the_start_is_each_rank_s_own(
    privatization: str, shared: Shared, tmp_path: Path
) -> None:
    option = f"--cfg=smpi/privatization:{privatization}"
    stops = [word for _ in range(TURNS) for word in ("print $_rank", "print n", "continue")]
    said = debugged(tmp_path, built(shared, "sums.c"), ["break leaf if g_rank == 2", "run", *stops], option)
    check_condition(said)


@pytest.mark.parametrize("privatization", ["dlopen", "mmap"])
def test_a_breakpoint_and_a_watchpoint_of_one_rank(privatization: str, shared: Shared, tmp_path: Path) -> None:
    """Once all ranks are there: the first one stops before, in its first call."""
    option = f"--cfg=smpi/privatization:{privatization}"
    commands = ["tbreak leaf if n == 2", "run", "rank break leaf 1", "continue", "print $_rank", "print g_rank"]
    commands += ["delete", "rank watch s_counter 2", "continue", "print $_rank", "print s_counter"]
    said = debugged(tmp_path, built(shared, "sums.c"), [*commands, "delete", "continue"], option)
    *others, value = values_in(said)
    assert others == [1, 1, 2] and value in (3, 6) and f"New value = {value}" in said, said  # who comes first is SMPI's
    assert sorted(re.findall(r"SUM (\d) (\d+)$", said, re.MULTILINE)) == [(str(one), "6") for one in range(RANKS)]


@pytest.mark.parametrize("source", ["mailed.c", "mailed.f90"])
def test_every_change_of_one_rank_s_data_that_is_remapped(source: str, shared: Shared, tmp_path: Path) -> None:
    """All ranks write it at one address, by turns, and SMPI writes there what they receive; one rank's count."""
    show = ["print $_rank", "continue"]
    function = "mailbox::open_box" if source.endswith(".f90") else "open_box"
    commands = [f"tbreak {function}", "run", "rank watch box 1", "rank watch box 2", "continue", *show * 6]
    said = debugged(tmp_path, built(shared, source), commands, "--cfg=smpi/privatization:mmap")
    shown = re.findall(r"^Hardware watchpoint (\d): box\n\nOld value = (\d+)\nNew value = (\d+)$", said, re.MULTILINE)
    of_rank = {rank: [(int(old), int(new)) for one, old, new in shown if one == str(rank + 1)] for rank in (1, 2)}
    assert of_rank == {1: [(0, 10), (10, 100), (100, 11)], 2: [(0, 20), (20, 101), (101, 21)]}, said
    assert "exited normally" in said and "ranklens failed" not in said
    assert sorted(re.findall(r"BOX (\d) (\d+)$", said, re.MULTILINE)) == [("0", "102"), ("1", "11"), ("2", "21")]


def test_steps_stay_in_their_rank(shared: Shared, tmp_path: Path) -> None:
    """`finish`, and `next` over a call in which all other ranks run."""
    commands = [
        "tbreak leaf if g_rank == 1",
        "run",
        "finish",
        *["next"] * 3,
        "print $_rank",
        "print g_rank",
        "continue",
    ]
    said = debugged(tmp_path, built(shared, "sums.c"), commands)
    lines = (SOURCES / "sums.c").read_text().splitlines()
    call, turn = (next(at for at, line in enumerate(lines, 1) if name in line) for name in ("leaf(i)", "for ("))
    shown = [int(one) for one in re.findall(r"^(?:Run till exit.*\n.*|)(\d+)\t", said, re.MULTILINE)]
    assert shown[-4:] == [call, call + 1, turn, turn + 1], (shown, said)
    assert values_in(said)[-2:] == [1, 1]
    check_sums(said)


def test_every_rank_s_values_while_gdb_has_the_copies_files(shared: Shared, tmp_path: Path) -> None:
    """GDB has read the copies as the loader loaded them: no rank's value may come from another's."""
    commands = ["tbreak leaf if n == 2", "run", "rank print g_rank", "rank 2", "print g_rank", "print &g_rank"]
    said = debugged(tmp_path, built(shared, "sums.c"), [*commands, "rank 1", "print g_rank", "print &g_rank"])
    assert re.findall(r"^(\d): (-?\d+)$", said, re.MULTILINE) == [(str(one), str(one)) for one in range(RANKS)], said
    assert values_in(said) == [2, 1]
    assert len(set(re.findall(r"\(int \*\) (0x\w+)", said))) == 2


def test_a_job_that_simgrid_calls_deadlocked_is_caught_before_it_ends(shared: Shared, tmp_path: Path) -> None:
    said = debugged(
        tmp_path, built(shared, "deadlock.c"), [f"break {DEADLOCK}", "run", "rank list", "rank print g_rank"]
    )
    rows = re.findall(r"^\s+(\d)\s+blocked\s+\d\s+MPI_Recv from (\d), tag 5", said, re.MULTILINE)
    assert rows == [("0", "1"), ("1", "2"), ("2", "0")], said
    assert re.findall(r"^(\d): (\d)$", said, re.MULTILINE) == [(str(one), str(one)) for one in range(RANKS)]
