"""Programs that start while GDB has breakpoints in ranks: in other inferiors, or executed by a rank."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, SOURCES, compile_program
from tests.support.gdb.session import Session

several_inferiors = pytest.mark.skipif(gdb_version() < (13, 0), reason="several inferiors need GDB 13 (docs/gdb.md)")

TURNS = 2

TO_THE_END = """
def to_the_end(number):
    "Where the inferior stops, from where it stands to its end."
    ask("inferior %d" % number), ask("rank")  # which selects the one that runs
    stops = []
    while gdb.selected_inferior().pid and len(stops) < 50:
        stops.append([gdb.selected_inferior().num, value("$_rank"), gdb.newest_frame().name()])
        said.append(ask("continue"))
    return stops

said = []
"""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A program without ranks that counts the calls of a function, and fails if its code is not as it was built."""
    source = tmp_path / "plain.c"
    source.write_text(
        "int calls;\n"
        "int count(void) { return ++calls; }\n"
        "int main(void) { for (int i = 0; i < 3; i++) count(); return calls == 3 ? 0 : 1; }\n"
    )
    program = tmp_path / "plain"
    subprocess.run(["gcc", "-g", source, "-o", program], check=True)
    return program


@several_inferiors
@pytest.mark.parametrize("adding", ["add-inferior -exec {rankrun}", "clone-inferior"])
def test_a_second_job_starts_and_stops_like_the_first(
    session: Session, rankrun: Path, ticks: Path, adding: str
) -> None:
    answers = session.run(
        f"""
{TO_THE_END}
ask("break tick")
ask("run")
ask({adding.format(rankrun=rankrun)!r})
ask("inferior 2")
ask("set args -n {RANKS} {ticks} {TURNS}")
said.append(ask("run"))
tell("second", to_the_end(2))
tell("first", to_the_end(1))
tell("said", said)
tell("hits", [value("$_rank_hits(1, %d)" % rank) for rank in range({RANKS})])
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    for number, stops in ((2, answers["second"]), (1, answers["first"])):
        expected = {(number, rank, "tick"): TURNS for rank in range(RANKS)}
        assert Counter(map(tuple, stops)) == expected, answers.output
    assert answers.output.count(f"ticked {TURNS}") == 2 * RANKS
    assert "annot" not in "".join(answers["said"]) + answers.output, answers.output
    assert "warning" not in "".join(answers["said"]), answers["said"]


@several_inferiors
def test_a_called_function_stops_at_a_breakpoint(session: Session, rankrun: Path, ticks: Path, plain: Path) -> None:
    """GDB aborts if it is made to forget the stop while it waits for the call's end."""
    script = f"""
ask("break main")
ask("run")
ask("add-inferior -exec {plain}")
ask("inferior 2")
ask("run")
ask("break count")
refusal = ask("print count()")
tell("stopped", ["stopped while in a function called from GDB" in refusal, functions()])
ask("inferior 1")
ask("inferior 2")
ask("finish")
tell("finished", [functions(), value("calls")])
"""
    with_ranks = session.run(script, "--args", rankrun, "-n", RANKS, ticks, TURNS)
    without = session.run(script, "--args", plain, source=False)
    for when in ("stopped", "finished"):
        assert with_ranks[when] == without[when]
    assert without["stopped"][0]


@several_inferiors
@pytest.mark.parametrize("always_inserted", ["on", "off"])
def test_a_program_without_ranks_is_left_alone(
    session: Session, rankrun: Path, ticks: Path, plain: Path, always_inserted: str
) -> None:
    """GDB puts a user's breakpoint there, and none of the first inferior's ranks."""
    answers = session.run(
        f"""
{TO_THE_END}
from gdbext.gdb_api.breakpoint_locations import every_breakpoint
ask("set breakpoint always-inserted {always_inserted}")
ask("break tick")
ask("break count")
ask("run")
ask("add-inferior -exec {plain}")
ask("inferior 2")
said.append(ask("run"))
tell("internal", sorted({{group for one in every_breakpoint() if not one.visible and hasattr(one, "rank")
                          for place in one.locations for group in place.thread_groups}}))
stops = []
while gdb.selected_inferior().pid and len(stops) < 10:
    stops.append([gdb.selected_inferior().num, gdb.newest_frame().name(), value("calls")])
    said.append(ask("continue"))
tell("second", stops)
tell("status", value("$_exitcode"))
tell("first", to_the_end(1))
tell("said", said)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        ticks,
        TURNS,
    )
    assert answers["internal"] == [1]
    assert answers["second"] == [[2, "count", calls] for calls in range(3)], answers.output
    assert answers["status"] == 0
    assert Counter(rank for _, rank, _ in answers["first"]) == dict.fromkeys(range(RANKS), TURNS)
    assert "annot" not in "".join(answers["said"]) + answers.output, answers.output


@pytest.mark.parametrize("catch", [False, True])
def test_a_rank_executes_another_program(
    session: Session, rankrun: Path, plain: Path, tmp_path_factory: pytest.TempPathFactory, catch: bool
) -> None:
    """Breakpoints of users stop there as they would without ranks, those of ranks are gone with these."""
    executes = compile_program("rankcc", tmp_path_factory.mktemp("executes"), "executes.c")
    answers = session.run(
        f"""
        said = []
        ask("break tick")
        ask("break count")
        if {catch}:
            ask("catch exec")
        ask("run")
        stops = []
        while gdb.selected_inferior().pid and len(stops) < 20:
            name = gdb.newest_frame().name()
            stops.append([name, value("calls") if name == "count" else value("$_rank")])
            said.append(ask("continue"))
        tell("stops", stops)
        tell("status", value("$_exitcode"))
        tell("rank", [ask("rank"), value("$_rank")])
        tell("said", said)
        """,
        "--args",
        rankrun,
        "-n",
        RANKS,
        executes,
        plain,
    )
    ranks, count = answers["stops"][:RANKS], [stop for stop in answers["stops"][RANKS:] if stop[0] == "count"]
    assert sorted(ranks) == [["tick", rank] for rank in range(RANKS)], answers.output
    assert count == [["count", calls] for calls in range(3)], answers.output
    assert len(answers["stops"]) == RANKS + 3 + catch
    assert answers["status"] == 0 and answers["rank"][1] == -1
    assert "annot" not in "".join(answers["said"]) + answers.output, answers.output


@several_inferiors
@pytest.mark.parametrize("mode, detach", [("parent", "on"), ("parent", "off"), ("child", "on"), ("child", "off")])
def test_a_step_over_a_fork_is_whole(
    session: Session, rankrun: Path, tmp_path_factory: pytest.TempPathFactory, mode: str, detach: str
) -> None:
    """An error amid GDB's events would have it come to its prompt while the step goes on.

    GDB 13 dies where it lists what it has for a thread that it has just detached from.
    """
    forks = compile_program("rankcc", tmp_path_factory.mktemp("forks"), "forks.c")
    answers = session.run(
        f"""
        ask("set detach-on-fork {detach}")
        ask("set follow-fork-mode {mode}")
        ask("break begin")
        ask("run")
        ask("finish")
        ask("next")
        tell("running", [thread.is_running() for one in gdb.inferiors() for thread in one.threads()])
        tell("line", gdb.selected_frame().find_sal().line if gdb.selected_thread() is not None else 0)
        tell("known", [value("$_rank"), value("child > 0")])
        """,
        "--args",
        rankrun,
        "-n",
        RANKS,
        forks,
    )
    assert not any(answers["running"]), answers.output
    assert "after the fork" in (SOURCES / "forks.c").read_text().splitlines()[answers["line"] - 1], answers.output
    assert answers["known"] == [0, mode == "parent"]


@several_inferiors
@pytest.mark.parametrize("non_stop", ["on", "off"])
def test_a_program_runs_beside_ranks_that_run(
    session: Session, rankrun: Path, plain: Path, tmp_path: Path, non_stop: str
) -> None:
    """It has none of the ranks' breakpoints, which GDB can't insert there, and then doesn't run it."""
    program = compile_program("rankcc", tmp_path, "loads.c")
    answers = session.run(
        f"""
ask("set non-stop {non_stop}")
ask("break load")
ask("run")
tell("rank", value("$_rank"))
ask("continue -a &" if gdb.parameter("non-stop") else "continue &")
tell("runs", [thread.is_running() for thread in gdb.selected_inferior().threads()])
ask("add-inferior -exec {plain}")
ask("inferior 2")
said = ask("run")
tell("second", [said, gdb.selected_inferior().pid, value("$_exitcode")])
gdb.execute("kill inferiors 1")
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
        tmp_path / "none.so",
    )
    assert answers["rank"] == RANKS - 1 and all(answers["runs"]), answers.output
    said, pid, status = answers["second"]
    assert "Cannot" not in said and (pid, status) == (0, 0), answers.output
