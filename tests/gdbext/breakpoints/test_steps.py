"""Steps of one rank while others come by breakpoints that do not stop them: they end where they would by themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, SOURCES, compile_program
from tests.support.gdb.session import Session

ROUNDS = 10

BEGIN = """
gdb.execute("set breakpoint pending on")
gdb.execute("rank tbreak turn 0")
gdb.execute("run")
gdb.execute("BREAKPOINT")
said = []
def steps():
    for command in ["finish", *["next"] * 30]:
        said.append(gdb.execute(command, to_string=True))
        yield [value("$_rank"), gdb.selected_frame().name(), gdb.selected_frame().find_sal().line]
"""
WALK = """
lines = []
for line in steps():
    lines.append(line)
    if line[2] == LAST:
        break
tell("lines", lines)
gdb.execute("delete")
gdb.execute("continue")
"""
HIT = """
tell("rank", next(rank for rank, _, _ in steps() if rank))
tell("said", said[-1])
tell("values", [value("ticks"), value("level")])
tell("focus", [ask("info symbol &ticks"), len(ask("info line tick").splitlines())])
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("steps"), "ticks.c")


@pytest.mark.parametrize("elements", [1, RANKS])
@pytest.mark.parametrize("breakpoint", ["tick if ticks < 0", "MPI_Sendrecv_replace if ticks < 0"])
def test_other_ranks_conditions_end_no_step(
    session: Session, rankrun: Path, ticks: Path, elements: int, breakpoint: str
) -> None:
    """GDB has the symbols of the rank whose condition it tests, and knows the end of a step by those of the other."""
    if elements > 1 and gdb_version() < (13, 0):
        pytest.skip("GDB 12 ends steps early where another thread hits a breakpoint meanwhile")
    source = (SOURCES / "ticks.c").read_text().splitlines()
    loop, last = (next(n for n, line in enumerate(source, 1) if text in line) for text in ("for (int i", "printf("))
    script = BEGIN.replace("BREAKPOINT", f"break {breakpoint}") + WALK.replace("LAST", str(last))
    answers = session.run(script, "--args", rankrun, "-n", RANKS, "--pes", elements, ticks, ROUNDS)
    lines = [loop + 1, *[loop, loop + 1] * (ROUNDS - 1), loop, last]
    lines = lines[answers["lines"][0][2] == loop :]  # a compiler may end the line with the call
    assert answers["lines"] == [[0, "main", line] for line in lines], answers.output
    assert sorted(re.findall(r"rank (\d) ticked (\d+)", answers.output)) == [
        (str(r), str(ROUNDS)) for r in range(RANKS)
    ]


@pytest.mark.parametrize("elements", [1, RANKS])
@pytest.mark.parametrize("function", ["tick", "MPI_Sendrecv_replace"])
def test_conditions_are_the_ranks_own_while_another_steps(
    session: Session, rankrun: Path, ticks: Path, elements: int, function: str
) -> None:
    condition = "ticks == 4 && level > 2.2 && level < 2.3"
    script = BEGIN.replace("BREAKPOINT", f"break {function} if {condition}") + HIT
    answers = session.run(script, "--args", rankrun, "-n", RANKS, "--pes", elements, ticks, ROUNDS)
    assert (answers["rank"], answers["values"]) == (2, [4, 2]), answers.output  # level is 2.25
    symbol, copies = answers["focus"]
    assert symbol.startswith("ticks in section") and copies == 1, "symbols of two ranks were left"


@pytest.mark.parametrize("elements", [1, RANKS])
def test_a_step_ends_where_a_condition_cant_be_told(
    session: Session, rankrun: Path, ticks: Path, elements: int
) -> None:
    condition = "'ticks.c'::ticks == 4"
    script = BEGIN.replace("BREAKPOINT", f"break tick if {condition}") + HIT
    answers = session.run(script, "--args", rankrun, "-n", RANKS, "--pes", elements, ticks, ROUNDS)
    assert answers["rank"] in (1, 2, 3), answers.output
    assert f"rank {answers['rank']}'s {condition} can't be read while rank 0 steps" in answers["said"], answers.output


@pytest.mark.parametrize(
    ("compiler", "source", "function", "condition", "expected"),
    [
        (
            "rankcxx",
            "members.cpp",
            "space::Box::add",
            "space::Box::total == 3 && total == 3 && space::seen == 6 && this->own == 9 && own == 9 && hidden == 7",
            {"space::seen": 6, "hidden": 7},
        ),
        ("rankfort", "ticks.f90", "tick", "counted .eq. 1 .and. me .eq. 2", {"counted": 1, "me": 2}),
    ],
)
def test_conditions_in_other_languages_while_another_rank_steps(
    session: Session,
    rankrun: Path,
    tmp_path: Path,
    compiler: str,
    source: str,
    function: str,
    condition: str,
    expected: dict[str, int],
) -> None:
    program = compile_program(compiler, tmp_path, source)
    script = f"""
gdb.execute("set breakpoint pending on")
gdb.execute("rank tbreak {function} 0")
gdb.execute("run")
gdb.execute("break {function} if {condition}")
steps = 0
while value("$_rank") == 0 and steps < 30:
    gdb.execute("finish" if steps == 0 else "next", to_string=True)
    steps += 1
tell("found", [value("$_rank"), {{name: value(name) for name in {list(expected)!r}}}])
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, program)
    assert answers["found"] == [2, expected], answers.output
