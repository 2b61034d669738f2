"""A location that the user has disabled alone (`disable 1.2`) stops no rank, in this run and in the next one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, SOURCES, compile_program
from tests.support.gdb.session import Session

TURNS = 3  # of same_name_first.c

SCRIPT = """
def stop():
    "Which function has called the one that is stopped in, and in which rank. GDB 12 does not tell the location."
    frame = gdb.newest_frame()
    file = frame.find_sal().symtab.filename.rpartition("_")[2]
    if gdb.VERSION > "13":
        numbers.append([locations()[file][0], f'{value("$_hit_bpnum")}.{value("$_hit_locno")}'])
    return [frame.older().name(), value("$_rank")]

def stops():
    "All stops to the end of the job."
    stops = []
    while gdb.selected_inferior().pid and len(stops) < 100:
        stops.append(stop())
        gdb.execute("continue")
    return stops

numbers = []

def locations():
    "By the file in which it is: a location's number, and whether GDB says that it is enabled."
    lines = ask("info breakpoints 1").splitlines()
    return {line.split(":")[0].rpartition("_")[2]: line.split()[:2] for line in lines if line.startswith("1.")}

gdb.execute("break part")
gdb.execute("BEFORE")
gdb.execute("run")
second = locations()["second.c"][0]
gdb.execute(f"disable {second}")
if stop()[0] == "second":  # this one was before
    gdb.execute("continue")
first = [stop()]
gdb.execute("MOVE")
tell("moved", {file: enabled for file, (_, enabled) in locations().items()})
gdb.execute("continue")
tell("stops", first + stops())
gdb.execute("run")
tell("again", {file: enabled for file, (_, enabled) in locations().items()})
tell("stops_again", stops())
gdb.execute(f"enable {second}")
gdb.execute("run")
tell("stops_enabled", stops())
tell("numbers", numbers)
"""


@pytest.fixture(scope="module")
def same_name(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("same_name")
    return compile_program("rankcc", folder, "same_name_first.c", str(SOURCES / "same_name_second.c"))


@pytest.mark.parametrize("before", ["echo", "condition 1 turn >= 0", "set breakpoint always-inserted on"])
@pytest.mark.parametrize("move", ["echo", "rank 2"])
def test_it_stops_no_rank(session: Session, rankrun: Path, same_name: Path, before: str, move: str) -> None:
    script = SCRIPT.replace("BEFORE", before).replace("MOVE", move)
    answers = session.run(script, "--args", rankrun, "-n", RANKS, same_name)
    assert answers["moved"] == {"first.c": "y", "second.c": "n"}, answers.output
    assert answers["again"] == answers["moved"], answers.output
    of_each = {("first", rank): TURNS for rank in range(RANKS)}
    assert Counter(map(tuple, answers["stops"])) == of_each, answers.output
    assert Counter(map(tuple, answers["stops_again"])) == of_each, answers.output
    both = of_each | {("second", rank): TURNS for rank in range(RANKS)}
    assert Counter(map(tuple, answers["stops_enabled"])) == both, answers.output
    assert len(answers["numbers"]) > RANKS or gdb_version() < (13, 0)
    assert all(told == listed for listed, told in answers["numbers"]), answers.output
    assert answers.output.count("exited normally") == 3
