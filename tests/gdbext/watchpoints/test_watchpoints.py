"""Plain `watch` in a rank: it means that rank's variables, as in a process, wherever the user and others go meanwhile.

The oracle is what each program does: rank k counts from 1 to as many as the argument says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import Session
from tests.support.host.script import Told

TIMES = 4
WATCHED = 2  # the rank

BEGIN = """
gdb.execute("set breakpoint pending on")
gdb.execute("rank tbreak FUNCTION RANK")
gdb.execute("run")
def stops(expression):
    found = []
    said = ask("continue")
    while gdb.selected_inferior().pid and len(found) < 30:
        found.append([value("$_rank"), value(expression), gdb.newest_frame().name()])
        said += ask("continue")
    tell("said", said)
    return found
def watched():
    return [one for one in gdb.breakpoints() if one.type != gdb.BP_BREAKPOINT]
""".replace("RANK", str(WATCHED))
# What moves symbols to another rank: the user, and conditions of others that are tested.
MEANWHILE = {
    "selected": 'gdb.execute("rank 0")',
    "selected and back": f'gdb.execute("rank 0"); gdb.execute("rank {WATCHED}")',
    "tested": 'gdb.execute("break tick if CONDITION")',
    "stopped": f'gdb.execute("rank tbreak tick {WATCHED + 1}")',
}


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


def launch(session: Session, script: str, rankrun: Path, program: Path, function: str = "turn", pes: int = 1) -> Told:
    script = BEGIN.replace("FUNCTION", function) + script
    return session.run(script, "--args", rankrun, "-n", RANKS, "--pes", pes, program, TIMES)


@pytest.mark.parametrize("pes", [1, RANKS])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("command", ["watch", "awatch"])
def test_a_variable(session: Session, rankrun: Path, ticks: Path, command: str, meanwhile: str, pes: int) -> None:
    act = MEANWHILE[meanwhile].replace("CONDITION", "ticks < 0")
    script = f"""
gdb.execute("{command} ticks")
{act}
tell("stops", stops("ticks"))
"""
    answers = launch(session, script, rankrun, ticks, pes=pes)
    others = [one for one in answers["stops"] if one[0] != WATCHED]
    changes = re.findall(r"Old value = (\d+)\s+New value = (\d+)", answers["said"] + answers.output)
    assert sorted(changes) == [(str(n), str(n + 1)) for n in range(TIMES)], answers.output
    assert len(others) == (meanwhile == "stopped"), answers.output


def test_no_change_is_missed_while_conditions_are_tested(session: Session, rankrun: Path, ticks: Path) -> None:
    """GDB reads watched values anew when symbols move, which other ranks' threads may just have changed."""
    script = """
gdb.execute("rank watch ticks 0-2")
gdb.execute("break tick if ticks < 0")
tell("before", [value(f'*(long *)$_rankaddr("ticks", {rank})') for rank in range(3)])
said = []
while gdb.selected_inferior().pid:
    said.append(ask("continue"))
tell("said", "".join(said))
"""
    answers = launch(session, script, rankrun, ticks, pes=RANKS)
    found = re.findall(
        r"Hardware watchpoint (\d+): .*\s+Old value = (\d+)\s+New value = (\d+)", answers["said"] + answers.output
    )
    changes = {(int(number), int(old), int(new)) for number, old, new in found}
    expected = {(2 + rank, n, n + 1) for rank, before in enumerate(answers["before"]) for n in range(before, TIMES)}
    assert changes == expected and len(found) == len(changes), answers.output


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_variable_of_a_function(session: Session, rankrun: Path, ticks: Path, meanwhile: str) -> None:
    """MPI_Sendrecv_replace changes it once in the call that is stopped at, and then the function returns."""
    script = f"""
gdb.execute("watch rank")
{MEANWHILE[meanwhile].replace("CONDITION", "ticks < 0")}
found = stops("ticks")
tell("stops", [one for one in found if one[0] == {WATCHED}])
tell("left", len(watched()))
"""
    answers = launch(session, script, rankrun, ticks)
    assert [name for _, _, name in answers["stops"]][1:] == ["main"], answers.output
    assert answers["left"] == 0


def test_conditions_commands_and_counts_go_along(session: Session, rankrun: Path, ticks: Path) -> None:
    """Rank k's `level` is k and a quarter."""
    script = f"""
gdb.execute("watch ticks if level > {WATCHED} && level < {WATCHED + 1}")
gdb.execute("watch ticks * 2")
gdb.execute("watch ticks if level > {WATCHED + 1}")
number = watched()[0].number
gdb.execute(f"commands {{number}}\\nset $seen = ticks\\nend")
gdb.execute(f"ignore {{number}} 2")
gdb.execute("rank 0")
new = watched()
tell("kept", [len(new), [one.ignore_count for one in new], [one.commands for one in new]])
tell("set", ask("info watchpoints"))
new[1].enabled = False
tell("stops", stops("ticks"))
"""
    answers = launch(session, script, rankrun, ticks)
    assert answers["kept"] == [3, [2, 0, 0], ["set $seen = ticks\n", None, None]], answers.output
    assert [one[:2] for one in answers["stops"]] == [[WATCHED, 3], [WATCHED, 4]], answers["set"]


def test_an_expression(session: Session, rankrun: Path, ticks: Path) -> None:
    script = """
gdb.execute("watch ticks * 2 + mixed.numbers[1]")
gdb.execute("rank 0")
tell("stops", stops("ticks"))
"""
    answers = launch(session, script, rankrun, ticks)
    assert [one[:2] for one in answers["stops"]] == [[WATCHED, count] for count in range(1, TIMES + 1)], answers.output


def test_what_cant_be_kept_is_told(session: Session, rankrun: Path, ticks: Path) -> None:
    script = """
gdb.execute("watch ticks + rank")
tell("disabled", ask("rank 0"))
tell("stops", stops("ticks"))
"""
    answers = launch(session, script, rankrun, ticks)
    assert re.search(r"\[Watchpoint \d+ is disabled, ticks \+ rank would mean another rank than 2", answers["disabled"])
    assert answers["stops"] == []


def test_in_fortran(session: Session, rankrun: Path, tmp_path: Path) -> None:
    program = compile_program("rankfort", tmp_path, "ticks.f90", f"-J{tmp_path}")
    script = """
gdb.execute("watch counted")
gdb.execute("break tick if counted < 0")
gdb.execute("rank 0")
tell("stops", stops("state::counted"))
"""
    answers = launch(session, script, rankrun, program, "tick")
    assert [one[:2] for one in answers["stops"]] == [[WATCHED, count] for count in (1, 2, 3)], answers.output


@pytest.mark.parametrize("expression", ["space::seen", "hidden", "space::Box::total", "box.own"])
def test_in_cxx(session: Session, rankrun: Path, tmp_path: Path, expression: str) -> None:
    program = compile_program("rankcxx", tmp_path, "members.cpp")
    script = f"""
gdb.execute("up")
gdb.execute("watch {expression}")
gdb.execute("break space::Box::add if n < 0")
gdb.execute("rank 0")
tell("stops", stops("1"))
"""
    answers = launch(session, script, rankrun, program, "space::Box::add")
    inside = [one for one in answers["stops"] if one[2].startswith("space::Box::add")]
    assert [one[0] for one in inside] == [WATCHED] * (0 if expression == "hidden" else 6), answers.output
