"""Breakpoints among copies: hit in every rank at the right place, copied into none.

The program tells nothing here: places are found by what the source says, code is compared with the file's own bytes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import Session
from tests.support.host.script import Told
from tests.support.running import StartJob

STOPS = """
def stop():
    frame = gdb.selected_frame()
    sal = frame.find_sal()
    return {"rank": value("$_rank"), "function": frame.name(), "line": sal.line, "is_start": frame.pc() == sal.pc,
            "args": [int(symbol.value(frame)) for symbol in frame.block() if symbol.is_argument]}

def go(most=100):
    stops = []
    gdb.execute("run")
    while gdb.selected_inferior().pid and len(stops) < most:
        stops.append(stop())
        gdb.execute("continue")
    return stops

def texts(path, start, size, symbol):
    "Whether the code of the original and of each copy is as in the file, by the kernel: GDB hides its own breakpoints."
    with open(path, "rb") as file:
        file.seek(start)
        expected = file.read(size)
    pid = gdb.selected_inferior().pid
    with open(f"/proc/{pid}/mem", "rb") as memory, open(f"/proc/{pid}/maps") as maps:
        bases = [next(int(line.split("-")[0], 16) for line in maps if path in line)]
        bases += [value(f'(long)$_rankaddr("move_on", {rank})') - symbol for rank in range(value("$_rank_count"))]
        found = []
        for base in bases:
            memory.seek(base + start)
            found.append(memory.read(size) == expected)
    return found
"""


def launch(session: Session, script: str, rankrun: Path, program: Path, *words: object) -> Told:
    return session.run(STOPS + script, "--args", rankrun, "-n", RANKS, program, *words)


def code_of(program: Path) -> tuple[int, int, int]:
    """Offset and size of the program's code in its file (and, as it is linked, in memory); value of `move_on`."""
    with program.open("rb") as file:
        elf = ELFFile(file)
        code = next(segment for segment in elf.iter_segments("PT_LOAD") if segment["p_flags"] & 1)
        assert code["p_offset"] == code["p_vaddr"]
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = table.get_symbol_by_name("move_on")
        assert symbols is not None and len(symbols) == 1
        return code["p_offset"], code["p_filesz"], symbols[0]["st_value"]


def test_hit_once_per_rank_at_the_right_place(session: Session, rankrun: Path, program: Path) -> None:
    script = """
    gdb.execute("break work")
    gdb.execute("break main")
    stops = go()
    tell("stops", stops)
    """.replace("\n    ", "\n")
    answers = launch(session, script, rankrun, program, "end")
    for function in ("main", "work"):
        stops = [one for one in answers["stops"] if one["function"] == function]
        assert sorted(stop["rank"] for stop in stops) == list(range(RANKS)), answers.output
        assert all(stop["is_start"] for stop in stops)
        assert len({stop["line"] for stop in stops}) == 1
        if function == "work":
            assert all(stop["args"] == [stop["rank"]] for stop in stops)
    assert "SIGTRAP" not in answers.output and "exited normally" in answers.output


def test_the_program_does_the_same_as_without(
    session: Session, start_job: StartJob, rankrun: Path, program: Path
) -> None:
    alone = start_job(rankrun, "-n", RANKS, program, "end")
    assert alone.finish() == 0
    script = 'gdb.execute("break move_on")\ntell("stops", [one["args"] for one in go()])\n'
    answers = launch(session, script, rankrun, program, "end")
    assert sorted(answers["stops"]) == [[rank, number] for rank in range(RANKS) for number in range(3)]
    assert set(alone.lines) <= set(answers.output.splitlines()), "breakpoints have changed what the program computes"


def test_no_breakpoint_is_written_into_variables(session: Session, rankrun: Path, program: Path) -> None:
    """In a process GDB finds no function of a variable's name; in views variables look like functions."""
    answers = launch(
        session,
        """
gdb.execute("break shared_name")
gdb.execute("break work")
gdb.execute("run")
tell("set now", ask("break table"))
tell("listed", [[one.location, one.enabled] for one in gdb.breakpoints() if one.number > 0])
tell("enabled again", [ask("enable 1"), gdb.breakpoints()[0].enabled])
while gdb.selected_inferior().pid:
    gdb.execute("continue")
""",
        rankrun,
        program,
        "end",
    )
    enabled = dict(answers["listed"])
    assert enabled.pop("work") and enabled and not any(enabled.values()), answers["listed"]
    assert "is the address of a variable" in answers["set now"] + answers["enabled again"][0]
    assert not answers["enabled again"][1] and "exited normally" in answers.output, answers.output
    own = [line.split() for line in answers.output.splitlines() if " shared_name 0x" in line]
    assert {int(row[0]): int(row[3]) for row in own} == {rank: 10 + rank for rank in range(RANKS)}, answers.output


def test_code_is_as_in_the_file_afterwards(session: Session, rankrun: Path, program: Path) -> None:
    where = code_of(program)
    script = f"""
gdb.execute("break move_on")
gdb.execute("break {program.name}.c:80")
gdb.execute("tbreak work if rank == 3")
gdb.execute("run")
gdb.execute("continue")
tell("stopped", texts("{program}", *{where}))
gdb.execute("delete")
gdb.execute("break spin")
gdb.execute("continue")
tell("later", texts("{program}", *{where}))
"""
    answers = launch(session, script, rankrun, program)
    assert answers["stopped"] == [True] * (RANKS + 1), answers.output
    assert answers["later"] == [True] * (RANKS + 1), answers.output


def test_conditions_mean_the_rank_that_stops(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break move_on if number == 1 && shared_name == 12")
gdb.execute("break places.c:90 if file_static == 22 || 'places.c'::file_static == 26")
gdb.execute("tbreak work if pair.second == 51")
gdb.execute("break main if $_rank == 2")
tell("stops", go())
tell("left", [one.number for one in gdb.breakpoints() if one.visible])
"""
    answers = launch(session, script, rankrun, program, "end")
    assert sorted((one["rank"], one["function"]) for one in answers["stops"]) == [
        (1, "main"),
        (1, "work"),
        (2, "main"),
        (2, "move_on"),
        (3, "main"),
    ], answers.output
    assert answers["left"] == [1, 2, 4]


def test_ranks_are_looked_at_after_a_hit_without_warnings_of_gdb(
    session: Session, rankrun: Path, program: Path
) -> None:
    """GDB itself stops the rank whose symbols it has: the place where it did moves when another rank is looked at."""
    script = """
gdb.execute("rank break work 2")
gdb.execute("run")
gdb.execute("rank break move_on 2")
gdb.execute("continue")
tell("hit", [value("$_rank"), gdb.newest_frame().name()])
tell("said", [ask("rank print $_rank"), ask("rank 0"), ask("rank 2"), ask("rank none"), ask("rank print $_rank")])
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["hit"] == [2, "move_on"], answers.output
    said = answers["said"]
    assert said[0] == said[4] == "".join(f"{rank}: {rank}\n" for rank in range(RANKS)), said
    assert "location number not found" not in "".join(answers["said"]) + answers.output, answers.output


def test_ignore_counts_commands_and_deletion(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break move_on")
gdb.execute("ignore 1 5")
gdb.execute("break work")
gdb.execute("commands 2\\nsilent\\nset $worked = $worked + 1\\nend")
gdb.execute("set $worked = 0")
gdb.execute("break main")
gdb.execute("run")
gdb.execute("delete 3")
stops = []
while gdb.selected_inferior().pid:
    gdb.execute("continue")
    if gdb.selected_inferior().pid:
        stops.append(stop())
tell("stops", [[one["function"], one["rank"], one["args"]] for one in stops])
tell("worked", value("$worked"))
"""
    answers = launch(session, script, rankrun, program, "end")
    work, move_on = (
        sorted([rank, *args] for name, rank, args in answers["stops"] if name == function)
        for function in ("work", "move_on")
    )
    assert len(work) + len(move_on) == len(answers["stops"]), answers["stops"]
    assert work == [[rank, rank] for rank in range(RANKS)] and answers["worked"] == RANKS, answers.output
    assert_all_but(5, move_on)


def assert_all_but(ignored: int, stops: list[list[int]]) -> None:
    """Of the calls of move_on all but so many have stopped, each once, and the rank of it: [rank, rank, number]."""
    calls = [[rank, rank, number] for rank in range(RANKS) for number in range(3)]
    assert len(stops) == len(calls) - ignored and all(stops.count(stop) == 1 and stop in calls for stop in stops), stops


def test_hits_of_all_ranks_are_counted(session: Session, rankrun: Path, program: Path) -> None:
    """Ignored ones too, as GDB counts; places where a condition is false are no hits."""
    script = """
gdb.execute("break move_on")
gdb.execute("ignore 1 5")
gdb.execute("break work if rank != 1")
gdb.execute("break MPI_Finalize")
stops = []
gdb.execute("run")
while gdb.selected_inferior().pid:
    if gdb.selected_frame().name() == "move_on":
        stops.append([value("$_rank"), *stop()["args"]])
    gdb.execute("continue")
tell("stops", stops)
tell("hits", [[value("$_rank_hits(%d)" % number) for number in (1, 2, 3)],
              [[value("$_rank_hits(%d, %d)" % (number, rank)) for rank in range(4)] for number in (1, 2)]])
tell("shown", ask("info breakpoints"))
tell("again", [ask("info breakpoints 1"), value("$_rank_hits(1)")])
tell("wrong", [ask("print $_rank_hits(%s)" % words) for words in ("9", "", "3, 1")])
gdb.execute("run")
tell("anew", [value("$_rank_hits(1)"), value("$_rank_hits(2)")])
ask("kill")
"""
    answers = launch(session, script, rankrun, program, "end")
    assert_all_but(5, answers["stops"])
    assert answers["hits"] == [[3 * RANKS, RANKS - 1, RANKS], [[3] * RANKS, [1, 0, 1, 1]]]
    table = re.findall(r"(?m)^(\d) .*\n(?:\t.*\n)*?\tbreakpoint already hit (\d+) times$", answers["shown"])
    assert dict(table).items() <= {"1": f"{3 * RANKS}", "2": f"{RANKS - 1}", "3": f"{RANKS}"}.items(), answers["shown"]
    assert ("3", f"{RANKS}") in table, "MPI_Finalize is not a rank's own: GDB counts all"
    hits = [line for line in answers["shown"].splitlines() if line.startswith("Breakpoint ")]
    assert hits == [
        f"Breakpoint 1 already hit {3 * RANKS} times: 3 times each by ranks 0-{RANKS - 1}",
        f"Breakpoint 2 already hit {RANKS - 1} times: once each by ranks 0,2-{RANKS - 1}",
    ], answers["shown"]
    again, total = answers["again"]
    assert hits[0] in again and total == 3 * RANKS
    assert answers["wrong"][0] == "error: there is no breakpoint 9", answers["wrong"]
    assert "takes one or two arguments, not 0" in answers["wrong"][1]
    assert "counts the hits of breakpoint 3 for all ranks" in answers["wrong"][2]
    assert sum(answers["anew"]) == 1, answers["anew"]


def test_counts_begin_anew_where_gdb_s_is_set_to_0(session: Session, rankrun: Path, program: Path) -> None:
    """Once where GDB's count is 1 before, and 1 again when it is asked next: each rank comes by three times."""
    script = """
def counts():
    "GDB's count, all hits, those by the rank that has stopped."
    return [gdb.breakpoints()[0].hit_count, value("$_rank_hits(1)"), value("$_rank_hits(1, $_rank)")]

found, ranks = [], []
gdb.execute("break move_on")
gdb.execute("run")
for reset in (2, 4):
    while len(ranks) < reset:
        gdb.execute("continue")
        ranks.append(value("$_rank"))
    found.append(counts())
    gdb.breakpoints()[0].hit_count = 0
    if reset == 2:
        found.append(counts())
gdb.execute("continue")
ranks.append(value("$_rank"))
found.append(counts())
tell("ranks", ranks)
tell("found", found)
tell("shown", ask("info breakpoints"))
ask("kill")
"""
    answers = launch(session, script, rankrun, program, "end")
    first, last = answers["ranks"][0], answers["ranks"][-1]
    assert answers["ranks"] == [first, first, last, last, last] and first != last
    before, reset, later, again = answers["found"]
    assert before[0] > 0 and before[1:] == [3, 3] and reset == [0, 0, 0]
    assert later == [1, 2, 2], "of a rank's first hit GDB does not know"
    assert again == [1, 1, 1]
    assert answers["shown"].endswith("\tbreakpoint already hit 1 time\n"), (
        "in the table alone: GDB has counted all of them"
    )


def test_a_disabled_breakpoint_stops_no_rank(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break move_on")
gdb.execute("run")
gdb.execute("continue")
gdb.execute("disable 1")
gdb.execute("tbreak places.c:90")
gdb.execute("continue")
tell("stop", stop())
gdb.execute("enable 1")
gdb.execute("tbreak work")
gdb.execute("continue")
tell("next", stop())
gdb.execute("continue")
tell("last", stop())
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["stop"]["function"] == "main", answers.output
    assert (answers["next"]["function"], answers["last"]["function"]) == ("work", "move_on"), answers.output


def test_a_breakpoint_set_while_one_rank_is_selected_stops_all(
    session: Session, start_job: StartJob, rankrun: Path, program: Path
) -> None:
    script = """
gdb.execute("break work")
gdb.execute("run")
gdb.execute("rank 2")
gdb.execute("break move_on if number == 0")
gdb.execute("delete 1")
stops = []
while gdb.selected_inferior().pid:
    gdb.execute("continue")
    if gdb.selected_inferior().pid:
        stops.append(stop())
tell("stops", stops)
"""
    answers = launch(session, script, rankrun, program, "end")
    assert sorted(one["rank"] for one in answers["stops"]) == list(range(RANKS)), answers.output


def test_the_program_can_be_run_again(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break work")
first = [(one["rank"], one["line"]) for one in go()]
tell("same", first == [(one["rank"], one["line"]) for one in go()])
tell("count", len(first))
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["same"] and answers["count"] == RANKS, answers.output


def test_stepping_and_finishing_in_a_rank(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break work if rank == 2")
gdb.execute("run")
start = stop()["line"]
gdb.execute("next")
gdb.execute("next")
tell("next", [stop()["line"] - start, value("$_rank")])
gdb.execute("break move_on")
gdb.execute("continue")
gdb.execute("finish")
tell("finished", [gdb.selected_frame().name(), value("$_rank"), value("$")])
gdb.execute("step")
gdb.execute("step")
tell("stepped", gdb.selected_frame().name())
"""
    answers = launch(session, script, rankrun, program, "end")
    assert answers["next"] == [2, 2], answers.output
    assert answers["finished"] == ["work", 2, 32], answers.output
    assert answers["stepped"] in ("move_on", "work"), answers.output


@pytest.mark.parametrize("ranks", [1, 70])
def test_any_number_of_ranks(session: Session, rankrun: Path, program: Path, ranks: int) -> None:
    script = 'gdb.execute("break work")\ntell("ranks", [one["rank"] for one in go(1000)])\n'
    answers = session.run(STOPS + script, "--args", rankrun, "-n", ranks, program, "end")
    assert sorted(answers["ranks"]) == list(range(ranks)), answers.output


def test_deleting_all_at_once(session: Session, rankrun: Path, program: Path) -> None:
    script = """
gdb.execute("break work")
gdb.execute("run")
from gdbext.gdb_api.breakpoint_locations import every_breakpoint
tell("followers", sum(not one.visible for one in every_breakpoint()))
tell("delete", ask("delete"))
tell("left", sum(one.visible for one in gdb.breakpoints()))
tell("after", ask("print 1 + 1"))
ask("kill")
"""
    answers = launch(session, script, rankrun, program, "end")
    assert (
        answers["followers"] >= RANKS
        and answers["delete"] == ""
        and answers["left"] == 0
        and answers["after"] == "$1 = 2\n"
    )


def test_locations_are_read_from_what_gdb_prints_where_it_does_not_tell_them(
    session: Session, rankrun: Path, program: Path
) -> None:
    """GDB 12 does not; GDB 13's own list is the oracle."""
    if gdb_version() < (13, 0):
        pytest.skip("this GDB has no list of locations to compare with")
    script = """
from gdbext.gdb_api import breakpoint_locations

def both(breakpoint):
    told = [[one.address, bool(one.enabled), list(one.thread_groups)] for one in breakpoint.locations]
    locations = breakpoint_locations.printed_locations(breakpoint.number)
    printed = [[location.address, location.enabled, location.thread_groups] for location in locations]
    return [told, printed]

gdb.execute("break move_on if number == 1")
gdb.execute("commands 1\\nsilent\\nprint 0x1234\\nend")
gdb.execute("tbreak main")
gdb.execute("break no_such_function")
gdb.execute("rbreak ^rank_debug_ev")
gdb.execute("run")
gdb.execute("disable 1")
gdb.execute("ignore 1 3")
gdb.execute("add-inferior -exec PROGRAM")
gdb.execute("break *$pc")
tell("both", [both(one) for one in breakpoint_locations.every_breakpoint()])
gdb.execute("disable 1.1")
tell("disabled", [both(one) for one in gdb.breakpoints() if one.number == 1])
ask("kill")
"""
    answers = launch(session, script.replace("PROGRAM", str(program)), rankrun, program, "end")
    assert len(answers["both"]) > 4 and any(told_by_gdb for told_by_gdb, _ in answers["both"])
    for told_by_gdb, printed in answers["both"] + answers["disabled"]:
        assert told_by_gdb == printed


def test_every_rank_is_hit_where_gdb_does_not_tell_locations(session: Session, rankrun: Path, program: Path) -> None:
    script = """
from gdbext.gdb_api import breakpoint_locations

breakpoint_locations.TELLS_LOCATIONS = False
gdb.execute("break move_on if number == 1")
gdb.execute("break work")
gdb.execute("ignore 2 1")
stops = go()
tell("stops", [[one["function"], one["rank"]] for one in stops])
tell("hits", [value("$_rank_hits(1)"), value("$_rank_hits(2)")])
"""
    answers = launch(session, script, rankrun, program, "end")
    assert sorted(rank for function, rank in answers["stops"] if function == "move_on") == list(range(RANKS)), (
        answers.output
    )
    assert sum(function == "work" for function, _ in answers["stops"]) == RANKS - 1
    assert answers["hits"] == [RANKS, RANKS]
    assert "SIGTRAP" not in answers.output and "exited normally" in answers.output


@pytest.mark.parametrize("told_by_gdb", [True, False])
def test_a_call_through_the_linkage_table_stops_once(
    session: Session, rankrun: Path, tmp_path: Path, told_by_gdb: bool
) -> None:
    """Built so that calls go through it, as AMPI's and SMPI's programs are: GDB takes the stub for a place, too."""
    program = compile_program("rankcxx", tmp_path, "members.cpp", "--method", "swap")
    script = f"""
from gdbext.gdb_api import breakpoint_locations

breakpoint_locations.TELLS_LOCATIONS = breakpoint_locations.TELLS_LOCATIONS and {told_by_gdb}
gdb.execute("break space::Box::add")
stops = go()
tell("stops", [[one["function"], one["rank"]] for one in stops])
"""
    answers = launch(session, script, rankrun, program)
    assert sorted(map(tuple, answers["stops"])) == sorted([("space::Box::add", rank) for rank in range(RANKS)] * 6)
    assert "exited normally" in answers.output


def test_a_place_that_gdb_does_not_write_to_stops_nothing_later(session: Session, rankrun: Path, program: Path) -> None:
    """GDB keeps a breakpoint that it can't insert, a user's one and each of ours, and tries again at each command."""
    script = """
gdb.execute("break move_on")
gdb.execute("run")
gdb.execute("delete")
start = value("(long)move_on")
gdb.execute(f"mem {start:#x} {start + 1:#x} ro")
gdb.execute("set mem inaccessible-by-default off")
gdb.execute("set breakpoint always-inserted on")
gdb.execute("set breakpoint auto-hw off")
tell("refused", ask(f"break *{start:#x}"))
ask("info breakpoints")  # here ranks get theirs
gdb.execute("delete")
gdb.execute("stepi")
tell("stepped", value("(long)$pc") != start)
gdb.execute("continue")
"""
    answers = launch(session, script, rankrun, program, "end")
    assert "Cannot insert breakpoint 2" in answers["refused"] and answers["stepped"], answers.output
    assert "exited normally" in answers.output
