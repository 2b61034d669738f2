"""Stops that concern certain ranks, counted exactly; and commands that need a rank to run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, Places, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.host.script import Told

TURNS = 10_000

TO_THE_END = """
stops = []
gdb.execute("continue")
while gdb.selected_inferior().pid and len(stops) < 20:
    stops.append([value("$_rank"), value("ticks"), gdb.newest_frame().name()])
    gdb.execute("continue")
tell("stops", stops)
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


def launch(session: Session, script: str, rankrun: Path, program: Path, turns: int) -> Told:
    return session.run(script, "--args", rankrun, "-n", RANKS, program, turns)


def test_ten_thousand_hits_of_one_rank(session: Session, rankrun: Path, ticks: Path) -> None:
    """The last hit is the one that the ignore count says; the other ranks never stop, and lose nothing."""
    answers = launch(
        session,
        f"""
gdb.execute("rank break tick 1")
gdb.execute("ignore 1 {TURNS - 1}")
gdb.execute("run")
tell("stop", [value("$_rank"), value("ticks"), gdb.newest_frame().name()])
tell("others", [value(f'*(long *)$_rankaddr("ticks", {{rank}})') for rank in range({RANKS})])
gdb.execute("continue")
tell("ended", gdb.selected_inferior().pid)
""",
        rankrun,
        ticks,
        TURNS,
    )
    assert answers["stop"] == [1, TURNS - 1, "tick"]
    assert all(abs(one - TURNS) <= RANKS for one in answers["others"])
    assert answers["ended"] == 0
    assert sorted(re.findall(r"rank (\d) ticked (\d+)", answers.output)) == [(str(r), str(TURNS)) for r in range(RANKS)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rank break tick 1-2", [1, 1, 1, 2, 2, 2]),
        ("rank break tick 3 if ticks == 1", [3]),
        ("rank tbreak tick 2", [2]),
        ("rank tbreak tick 0,2 if ticks == 2 && level > 1", [2]),
        ("rank break tick", sorted([0, 1, 2, 3] * 3)),
        ('break tick if $_rank_in(\\"0,3\\") && ticks == 0', [0, 3]),
        ("rank break MPI_Sendrecv_replace 1-3 if ticks == 2", [1, 2, 3]),
        ("break MPI_Finalize if level > 1.5 && $_rank != 2", [3]),
        ("rank tbreak MPI_Finalize 1", [1]),
    ],
)
def test_which_ranks_stop(session: Session, rankrun: Path, ticks: Path, command: str, expected: list[int]) -> None:
    if gdb_version() < (13, 0) and "MPI_" in command and " if " in command:
        pytest.skip("GDB 12 sets no breakpoint whose condition names what is not known yet")
    answers = launch(
        session,
        f"""
gdb.execute("{command}")
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid:
    stops.append(value("$_rank"))
    gdb.execute("continue")
tell("stops", stops)
tell("left", len([one for one in gdb.breakpoints() if one.visible]))
""",
        rankrun,
        ticks,
        3,
    )
    assert sorted(answers["stops"]) == expected, answers.output
    assert answers["left"] == (0 if "tbreak" in command else 1)
    assert answers.output.count("ticked 3") == RANKS


@pytest.mark.parametrize(
    ("method", "flags"), [("none", ()), ("swap", ("--method", "swap")), ("tls", ("--method", "tls", "-DOWN=__thread"))]
)
def test_conditions_in_code_that_ranks_share(
    session: Session, rankrun: Path, tmp_path: Path, method: str, flags: tuple[str, ...]
) -> None:
    """One place for all ranks, where GDB would test each condition with the globals of whichever rank it knows."""
    ticks = compile_program("rankcc", tmp_path, "ticks.c", *flags)
    answers = session.run(
        f"""
gdb.execute("rank break tick 1,3")
gdb.execute("break turn if $_rank == 2 && ({method == "none":d} || ticks == 1)")
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid:
    rank = value("$_rank")
    stops.append([gdb.selected_frame().name(), rank, value("level")])
    if len(stops) == 3:
        tell("listed", ask("info breakpoints"))
    gdb.execute("continue")
tell("stops", stops)
tell("hits", [value("$_rank_hits(1)"), value("$_rank_hits(1, 3)"), value("$_rank_hits(2)")])
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        "--method",
        method,
        ticks,
        2,
    )
    turns = 2 if method == "none" else 1
    expected = [("tick", 1)] * 2 + [("tick", 3)] * 2 + [("turn", 2)] * turns
    assert sorted((function, rank) for function, rank, _ in answers["stops"]) == expected
    assert method == "none" or all(level == rank for _, rank, level in answers["stops"])
    assert answers["hits"] == [4, 2, turns]
    assert "Breakpoint 1 already hit" in answers["listed"] and "MULTIPLE" not in answers["listed"]


@pytest.mark.parametrize(
    ("method", "flags"), [("pie", ()), ("swap", ("--method", "swap")), ("tls", ("--method", "tls", "-DOWN=__thread"))]
)
def test_hits_are_of_the_rank_that_comes_by(
    session: Session, rankrun: Path, tmp_path: Path, method: str, flags: tuple[str, ...]
) -> None:
    """Also where GDB stops by itself, in code that all ranks share, and another rank was in focus before."""
    ticks = compile_program("rankcc", tmp_path, "ticks.c", *flags)
    script = """
gdb.execute("break tick")
gdb.execute("run")
counts = []
while gdb.selected_inferior().pid:
    counts.append(value("$_rank_hits(1, $_rank)"))
    gdb.execute("continue")
tell("counts", counts)
tell("whole", [value("$_rank_hits(1, %d)" % rank) for rank in range(RANKS)])
"""
    words = ("--args", rankrun, "-n", RANKS, "--method", method, ticks, 2)
    answers = session.run(script.replace("RANKS", str(RANKS)), *words)
    assert sorted(answers["counts"]) == sorted([1, 2] * RANKS) and answers["whole"] == [2] * RANKS, answers.output


def test_disabled_deleted_and_commands(session: Session, rankrun: Path, ticks: Path) -> None:
    """`disable` and `delete` hold in every rank, and commands run at every rank's stop."""
    answers = launch(
        session,
        """
gdb.execute("break tick if ticks == 0")
gdb.execute("break turn")
gdb.execute("disable 2")
gdb.breakpoints()[0].commands = 'silent\\nprint/d $_rank * 100'
gdb.execute("run")
first = value("$_rank")
gdb.execute("continue")
second = value("$_rank")
gdb.execute("enable 2")
gdb.execute("delete 1")
gdb.execute("continue")
tell("stops", [first, second, gdb.newest_frame().name()])
gdb.execute("delete")
gdb.execute("continue")
tell("ended", gdb.selected_inferior().pid)
""",
        rankrun,
        ticks,
        2,
    )
    first, second, function = answers["stops"]
    assert first != second and function == "turn" and answers["ended"] == 0
    printed = [int(one) for one in re.findall(r"^\$\d+ = (\d+)$", answers.output, re.MULTILINE)]
    assert printed == [100 * first, 100 * second], answers.output
    assert answers.output.count("ticked 2") == RANKS


TIMES = 3  # that the Fortran program ticks, whatever its argument says


@pytest.fixture(scope="module")
def fortran_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankfort", tmp_path_factory.mktemp("fortran"), "ticks.f90")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rank break tick 1-2", [1, 1, 1, 2, 2, 2]),
        ("rank tbreak tick 3", [3]),
        ("rank break tick 0,3 if counted == 1 .or. counted > 7", [0, 3]),
    ],
)
def test_which_ranks_stop_in_fortran(
    session: Session, rankrun: Path, fortran_ticks: Path, command: str, expected: list[int]
) -> None:
    answers = launch(
        session,
        f"""
gdb.execute("break MPI_Init")
gdb.execute("run")
gdb.execute("delete")
gdb.execute("set language fortran")
tell("set", ask("{command}"))
stops = []
ask("continue")
while gdb.selected_inferior().pid:
    stops.append(value("$_rank"))
    ask("continue")
tell("stops", stops)
""",
        rankrun,
        fortran_ticks,
        TIMES,
    )
    assert sorted(answers["stops"]) == expected, answers["set"] + answers.output
    assert answers.output.count(f"ticked {TIMES}") == RANKS


def test_a_watched_variable_in_fortran(session: Session, rankrun: Path, fortran_ticks: Path) -> None:
    answers = launch(
        session,
        """
gdb.execute("tbreak tick")
gdb.execute("run")
tell("set", [ask("rank watch counted 1"), ask("rank watch weight 2"), ask("rank watch state::nothing 1")])
stops = []
ask("continue")
while gdb.selected_inferior().pid and len(stops) < 20:
    if gdb.newest_frame().name() == "state::tick":
        stops.append([value("$_rank"), value("state::counted"), int(value("state::weight"))])
    ask("continue")
tell("stops", stops)
""",
        rankrun,
        fortran_ticks,
        TIMES,
    )
    assert "Warning" not in answers["set"][0] + answers["set"][1], answers["set"]
    assert sum("Hardware watchpoint" in one for one in answers["set"]) == 2 and "error" in answers["set"][2], answers[
        "set"
    ]
    counted = [[1, 1, 0], [1, 2, 101], [1, 3, 102]]
    weighed = [[2, 1, 201], [2, 2, 202], [2, 3, 203]]
    assert sorted(answers["stops"]) == sorted(counted + weighed), answers.output


def test_more_places_than_the_processor_watches(session: Session, places: Places) -> None:
    """GDB would take them, and then could not go on."""
    answers = session.attach(
        """
tell("three", ask("rank watch shared_name 0-2"))
tell("more", ask("rank watch shared_name 0-1"))
tell("left", len([one for one in gdb.breakpoints() if one.visible]))
""",
        places.pid,
    )
    assert answers["three"].count("Hardware watchpoint") == 3
    assert answers["more"].startswith("error: 5 places are more than the 4 that the processor can watch"), answers[
        "more"
    ]
    assert answers["left"] == 3


def test_a_watched_variable(session: Session, rankrun: Path, ticks: Path) -> None:
    answers = launch(
        session,
        """
gdb.execute("tbreak turn")
gdb.execute("run")
tell("set", ask("rank watch ticks 1-2"))
"""
        + TO_THE_END,
        rankrun,
        ticks,
        3,
    )
    assert answers["set"].count("Hardware watchpoint") == 2, answers["set"]
    inside = [stop for stop in answers["stops"] if stop[2] == "tick"]
    assert sorted(inside) == [[rank, count, "tick"] for rank in (1, 2) for count in (1, 2, 3)], answers.output


def test_the_rank_in_a_watchpoints_condition(session: Session, rankrun: Path, ticks: Path) -> None:
    """GDB tests it before anybody is asked: `$_rank` would be the rank of the stop before."""
    answers = launch(
        session,
        """
gdb.execute("tbreak turn")
gdb.execute("run")
tell("first", value("$_rank"))
place = hex(value("(long)&ticks"))
tell("warned", [ask(f"watch *(long *){place} if $_rank == 7"), ask("condition 2 $_rank_in(\\"7\\")")])
gdb.execute("delete 2")
tell("quiet", ask(f"watch *(long *){place} if $_rank_of($sp) == {told['first']}"))
ask(f"watch *(long *){place} if $_rank_of($sp) != {told['first']}")
"""
        + TO_THE_END,
        rankrun,
        ticks,
        3,
    )
    assert all("use $_rank_of($sp)" in one for one in answers["warned"]), answers["warned"]
    assert "use $_rank_of" not in answers["quiet"]
    assert [one for one in answers["stops"] if one[2] == "tick"] == [
        [answers["first"], count, "tick"] for count in (1, 2, 3)
    ], answers.output


@pytest.mark.skipif(gdb_version() < (15, 0), reason="GDB 13 crashes at a catchpoint's condition, without ranklens")
def test_the_variable_in_a_catchpoints_condition(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """GDB keeps the variable that the name meant when it was typed; what the sentence says is the rank's own."""
    answers = launch(
        session,
        """
import re
gdb.execute("tbreak walk")
gdb.execute("run")
ask("catch syscall getppid")
tell("warned", ask(f"condition 2 pacer == {RANKS - 1 - value('pacer')}"))
(own,) = re.findall(r"use (.+), which", told["warned"])
tell("quiet", ask(f"condition 2 {own} == {RANKS - 1 - value('pacer')}"))
stops = []
tell("expected", RANKS - 1 - value("pacer"))
gdb.execute("continue")
while gdb.selected_inferior().pid and len(stops) < 20:
    stops.append([value("$_rank"), value("pacer")])
    gdb.execute("continue")
tell("stops", stops)
""".replace("RANKS", str(RANKS)),
        rankrun,
        compile_program("rankcc", tmp_path, "paces.c"),
        3,
    )
    assert answers["quiet"] == "" and "pacer of the rank that is selected now" in answers["warned"], answers["warned"]
    assert answers["stops"] == [[answers["expected"]] * 2] * 3 * 2, answers.output  # each call stops, and each return


def test_found_values(session: Session, rankrun: Path, ticks: Path) -> None:
    """The program's own initial values, and what it adds to them, say who holds what."""
    answers = launch(
        session,
        """
gdb.execute("rank tbreak tick 3 if ticks == 4")
gdb.execute("run")
for word in ("2.25", "9", "9 1", "120", "31999", "none", "1 2 3"):
    tell(word, ask("rank find " + word))
""",
        rankrun,
        ticks,
        5,
    )
    assert answers["2.25"] == "level (ticks.c:15): 2\n"
    assert answers["9"] == "mixed.numbers[1] (ticks.c:19): 1\nmixed.numbers[2] (ticks.c:19): 0-3\n"
    assert answers["9 1"] == "mixed.numbers[1] (ticks.c:19): 1\nmixed.numbers[2] (ticks.c:19): 1\n"
    assert answers["120"] == "mixed.letter (ticks.c:19): 0-3\n"
    assert answers["31999"] == "No global of 0-3 holds 31999\n"
    assert answers["none"].startswith("error: 'none' is not a number") and answers["1 2 3"].startswith("error: ")


def test_events(session: Session, rankrun: Path, ticks: Path) -> None:
    answers = launch(session, 'gdb.execute("rank events on")\ngdb.execute("run")\n', rankrun, ticks, 1)
    for rank in range(RANKS):
        assert (
            answers.output.count(f"[rank {rank} is created]") == answers.output.count(f"[rank {rank} has ended]") == 1
        )


@pytest.mark.usefixtures("calls")
def test_running_ranks_go_on_step_by_step(session: Session, rankrun: Path, ticks: Path) -> None:
    answers = launch(
        session,
        """
gdb.execute("rank tbreak tick 2")
gdb.execute("run")
def here():
    frame = gdb.selected_frame()
    return [value("$_rank"), frame.name(), value("ticks")]
found = [here()]
for command in ("next", "finish", "step", "up"):
    gdb.execute(command)
    found.append(here())
tell("found", found)
tell("called", value("tick(40)"))
tell("after", value("ticks"))
""",
        rankrun,
        ticks,
        2,
    )
    assert answers["found"][:3] == [[2, "tick", 0], [2, "tick", 1], [2, "turn", 1]]
    assert answers["called"] == 42 and answers["after"] == 2


def test_running_ranks_are_sent_elsewhere(session: Session, rankrun: Path, ticks: Path) -> None:
    """`return` leaves tick() before it counts, `jump` has it called once more; the other ranks are left alone."""
    answers = launch(
        session,
        """
gdb.execute("rank tbreak tick 2")
gdb.execute("run")
found = []
for command in ("return (long) 5", "tbreak tick", "jump turn", "until", "advance turn", "continue"):
    gdb.execute(command)
    stands = gdb.selected_inferior().pid and gdb.selected_frame()
    found.append([value("$_rank"), stands.name(), value("ticks")] if stands else None)
tell("found", found)
""",
        rankrun,
        ticks,
        1,
    )
    assert answers["found"] == [[2, "turn", 0], [2, "turn", 0], [2, "tick", 0], [2, "tick", 1], [2, "turn", 1], None]
    assert sorted(re.findall(r"rank (\d) ticked (\d+)", answers.output)) == [(str(rank), "1") for rank in range(RANKS)]


@pytest.fixture(scope="module")
def throws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcxx", tmp_path_factory.mktemp("throws"), "throws.cpp")


@pytest.mark.parametrize("method", ["pie", "pip"])
def test_exceptions_are_caught_in_every_rank(session: Session, rankrun: Path, throws: Path, method: str) -> None:
    """Set before there is a rank: in the C++ library's code, which all ranks share, or each has in its namespace."""
    if method == "pip" and gdb_version() < (13, 0):
        pytest.skip("GDB 12 reads no libraries in other namespaces of the dynamic linker")
    if method == "pip" and gdb_version() >= (17, 0):
        pytest.skip("GDB 17 and newer can not know libraries of other namespaces while symbols of one are out")
    answers = session.run(
        """
gdb.execute("catch throw")
gdb.execute("catch catch")
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid:
    stops.append([value("$_rank"), value("thrown"), functions()[:2]])
    gdb.execute("continue")
tell("stops", stops)
tell("hits", [one.hit_count for one in gdb.breakpoints() if one.number > 0])
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        "--method",
        method,
        throws,
    )
    expected = []
    for rank in range(RANKS):
        expected += [[rank, 40 + rank, ["__cxa_throw", "fail"]], [rank, 40 + rank, ["__cxa_begin_catch", "main"]]]
    assert sorted(answers["stops"], key=lambda stop: stop[0]) == expected
    assert answers["hits"] == [RANKS, RANKS]
    assert "warning: location" not in answers.output
    assert [f"rank {rank} caught on purpose" in answers.output for rank in range(RANKS)] == [True] * RANKS


@pytest.mark.parametrize("command", ["step", "next", "finish", "until", "return", "jump 40", "call move_on(1, 1)"])
def test_suspended_ranks_do_not_go_on(session: Session, places: Places, command: str) -> None:
    answers = session.attach(
        f"""
gdb.execute("rank 1")
tell("refused", ask("{command}"))
tell("rank", value("$_rank"))
tell("stack", functions()[-4:])
""",
        places.pid,
    )
    word = command.split()[0]
    assert answers["refused"].startswith(f"error: `{word}` needs a rank that runs, and rank 1 is blocked in MPI_Recv")
    assert ("the command `pieglobalsfind ADDRESS` reports" in answers["refused"]) == (word == "call")
    assert answers["rank"] == 1 and answers["stack"] == ["MPI_Recv", "wait_for", "stay", "main"]


def test_a_user_s_own_hooks_are_left_alone(session: Session, places: Places) -> None:
    """GDB takes `hook-step` for the beginning of `hook-stepi`, which it is not."""
    answers = session.run(
        f"""
gdb.execute("define hook-stepi\\necho mine\\nend")
gdb.execute("define hook-next\\necho mine too\\nend")
gdb.execute("source {EXTENSION}")
for command in ("step", "stepi", "next"):
    gdb.execute("rank 1")
    tell(command, ask(command))
tell("next's", ask("show user hook-next"))
""",
        "-p",
        places.pid,
        source=False,
    )
    assert "needs a rank that runs" in answers["step"]
    assert "needs a rank that runs" not in answers["stepi"] + answers["next"] and "echo mine too" in answers["next's"]


@pytest.mark.usefixtures("calls")
def test_nothing_is_called_from_a_suspended_rank(session: Session, places: Places) -> None:
    """It would run on the stack of the rank that happens to run."""
    answers = session.attach(
        """
gdb.execute("rank 1")
for command in ("print move_on(1, 1)", "call shared_name", "compile print shared_name", "print table",
                "rank print move_on(1, 1) 0-2", "rank apply 2 print move_on(1, 1)"):
    tell(command, ask(command))
tell("turned on", ask("set may-call-functions on"))
tell("still off", ask("print move_on(1, 1)"))
tell("why", ask("show may-call-functions"))
gdb.execute("rank 3")
tell("permitted", ask("show may-call-functions"))
tell("running", [ask(f"{word} move_on(3, 1)") for word in ("print", "call")])
gdb.execute("rank 1")
tell("calls", value("move_on::calls"))
""",
        places.pid,
    )
    only = "unctions can be called only in a rank that runs"
    for command in ("print move_on(1, 1)", "still off"):
        assert answers[command].startswith("error: Cannot call functions"), answers[command]
    for command in ("call shared_name", "compile print shared_name"):
        assert "needs a rank that runs" in answers[command] and "`print EXPR` shows" in answers[command], answers[
            command
        ]
    assert answers["rank print move_on(1, 1) 0-2"].startswith(f"0-2: <f{only}>")
    assert answers["rank apply 2 print move_on(1, 1)"] == f"error: f{only}: `rank list --state running` lists them"
    assert answers["turned on"].startswith(f"F{only}, and the selected one is suspended: `rank list")
    assert answers["turned on"] in answers["why"] and "is off" in answers["why"]
    assert answers["permitted"] == "Permission to call functions in the program is on.\n"
    assert "{100, 101, 102, 0}" in answers["print table"]
    assert [said.split(" = ")[1] for said in answers["running"]] == ["46\n", "50\n"]
    assert answers["calls"] == places.owned[1, "calls"].value


def test_looking_changes_nothing(session: Session, places: Places) -> None:
    """Every command that only looks, and all writable memory before and after."""
    answers = session.attach(
        """
import hashlib
def memory():
    digest = hashlib.sha256()
    pid = gdb.selected_inferior().pid
    for line in open(f"/proc/{pid}/maps"):
        place, able, *rest = line.split()
        start, end = (int(word, 16) for word in place.split("-"))
        if "w" in able and "r" in able and "[v" not in line:
            digest.update(bytes(gdb.selected_inferior().read_memory(start, end - start)))
    return digest.hexdigest()
before = memory()
for command in ("rank list", "rank tree", "rank bt all full", "rank print shared_name", "rank diff table",
                "rank info 2", "rank 2", "bt full", "info locals", "print pair", "print &pair", "x/4wx table",
                "info symbol move_on", "ptype pair", "rank find 20", "rank where &pair", "rank apply all info frame",
                "pieglobalsfind &table", "rank none"):
    answer = ask(command)
    assert not answer.startswith("error"), (command, answer)
tell("same", before == memory())
gdb.execute("rank 1")
gdb.execute("set var shared_name = 4711")
tell("changed", before != memory())
""",
        places.pid,
    )
    assert answers["same"] is True and answers["changed"] is True
