"""One GDB on all processes of a job: rank numbers mean the whole job, and breakpoints go where ranks go.

What wander.c does tells where each rank is and how often; what a rank says of itself (`my_rank`) tells whose values
they are.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.host.script import Told
from tests.support.job_programs import PROGRAMS, Build
from tests.support.running import Job, StartJob
from tests.support.waiting import wait_until

from .test_gdb import PROCESSES, RANKS, ROUNDS, are_running, visits, wait_for_processes, wandering

__all__ = ["wandering"]

BEGIN = r"""
import re
from collections import Counter

ask("set schedule-multiple on")

def attach(pids):
    ask("attach %d" % pids[0])
    for number, pid in enumerate(pids[1:], 2):
        ask("add-inferior")
        ask("inferior %d" % number)
        ask("attach %d" % pid)

def alive():
    return [one.num for one in gdb.inferiors() if one.pid]

def here():
    "Whom GDB has stopped, by what it says and by what the program says."
    return [gdb.selected_inferior().num, value("$_rank"), value("my_rank"), gdb.selected_frame().name()]

stopped = []
gdb.events.stop.connect(lambda event: stopped.append(isinstance(event, gdb.BreakpointEvent)))

def hits(most):
    "Goes on until so many stops, or until no process is left."
    found, said = [], []
    for _ in range(2 * most + 10):
        if len(found) == most or not alive():
            break
        del stopped[:]
        said.append(ask("continue"))
        if any(stopped):
            found.append(here())
        elif alive() and not gdb.selected_inferior().pid:
            ask("inferior %d" % alive()[0])
    tell("said", said)
    return found

def let_go():
    "The job goes on to its end without GDB."
    ask("delete")
    for number in alive():
        ask("detach inferiors %d" % number)
"""


@pytest.fixture
def session(gdb: Path, tmp_path: Path) -> Session:
    return Session(gdb, tmp_path)


def attach(session: Session, pids: list[int], script: str) -> Told:
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return session.run("\n".join([BEGIN, f"attach({pids})", *(line[indent:] for line in lines)]))


def is_well_done(job: Job) -> bool:
    """The job ended as it does without a debugger."""
    done = job.finish() == 0
    return done and len(job.lines) == RANKS * ROUNDS and all(": 0 wrong" in line for line in job.lines)


def test_rank_numbers_mean_the_whole_job(wandering: Job, session: Session, tmp_path: Path) -> None:
    pids = wait_for_processes(wandering)
    lines = (PROGRAMS / "wander.c").read_text().splitlines()
    after_last_move = next(number for number, line in enumerate(lines, 1) if "printf(" in line)
    script = f"""
        tell("first", [ask("rank"), ask("rank list")])
        ask("tbreak wander.c:{after_last_move} if round == {ROUNDS - 1}")
        open({str(tmp_path / "go")!r}, "w").close()
        hits(1)
        tell("list", [line.replace("*", " ").split() for line in ask("rank list").splitlines()[1:]])
        tell("print", ask("rank print my_rank"))
        tell("diff", ask("rank diff 2 * (my_rank / 2)"))
        tell("find", ask("rank find 2"))
        tell("apply", ask("rank apply all -s print 100 + my_rank"))
        tell("bt", ask("rank apply all bt"))
        tell("one by one", "".join("".join([ask("rank %d" % rank) and "", ask("bt")]) for rank in range({RANKS})))
        tell("tree", ask("rank tree"))
        tell("count", value("$_rank_count"))
        tell("where", gdb.selected_inferior().num)
        tell("there", [ask('print *(int *)$_rankaddr("my_rank", %d)' % rank) for rank in range({RANKS})])
        tell("owner", value("$_rank_of(&my_rank)") == here()[1])
        selected = []
        for rank in (3, 0, 2, 1):
            said = ask("rank %d" % rank)
            selected.append([gdb.selected_inferior().num, value("$_rank"), value("my_rank"), said.split("]")[0],
                             ask("rank")])
        tell("selected", selected)
        ask("rank apply 0-2 print my_rank")
        tell("still", [value("$_rank"), value("my_rank")])
        tell("none", [ask("rank 4"), ask("rank list 2-9")])
        ask("inferior %d" % (3 - gdb.selected_inferior().num))
        tell("other", [gdb.selected_inferior().num, ask("rank")])
        let_go()
        """
    answers = attach(session, pids, script)
    rank, rows = answers["first"]
    assert "Rank 2 is selected because it runs on the stopped thread" in rank and "in inferior 2 (" in rank
    assert [line.replace("*", " ").split()[0] for line in rows.splitlines()[1:]] == ["0", "1", "2", "3"], rows
    homes = {}
    for row in answers["list"]:
        assert row[1] in ("running", "ready", "blocked"), answers["list"]
        at = row.index("inferior")
        homes[int(row[0])] = int(row[at + 1]), int(row[at + 2].strip("()"))
    assert sorted(homes) == list(range(RANKS))
    assert set(homes.values()) <= {(1, pids[0]), (2, pids[1])}
    assert "warning" not in answers["print"], answers["print"]
    assert answers["print"].split() == [word for rank in range(RANKS) for word in (f"{rank}:", str(rank))]
    assert answers["diff"] == "0-1: 0\n2-3: 2\n"
    assert "my_rank (wander.c:22): 2\n" in answers["find"]
    assert [line.split(" = ")[1] for line in answers["apply"].splitlines() if " = " in line] == [
        "100",
        "101",
        "102",
        "103",
    ]
    assert [line for line in answers["bt"].splitlines() if line[0] != "R"] == answers["one by one"].splitlines()
    assert "[0-3]" in answers["tree"] and "main at wander.c" in answers["tree"]
    assert answers["count"] == RANKS and answers["owner"]
    for number, said in enumerate(answers["there"]):
        home = homes[number][0]
        refused = f"rank {number} is in inferior {home} ({pids[home - 1]}), whose memory is another"
        assert said.endswith(f" = {number}\n") if home == answers["where"] else refused in said, answers["there"]
    for number, (inferior, selected, own, said, why) in zip((3, 0, 2, 1), answers["selected"]):
        assert (inferior, selected, own) == (homes[number][0], number, number), answers["selected"]
        assert f"in inferior {inferior} ({pids[inferior - 1]})" in said and f"Rank {number} is selected" in why
    assert answers["still"] == [1, 1]
    assert answers["none"] == [
        "error: there is no rank 4: these processes have 0-3",
        "error: there is no rank 4: these processes have 0-3",
    ]
    inferior, why = answers["other"]
    assert f"in inferior {inferior} (" in why or "none runs on thread" in why
    assert is_well_done(wandering), wandering.stderr()


@pytest.mark.parametrize("wandering", ["whole", "lean"], indirect=True)
def test_a_breakpoint_goes_where_ranks_go(wandering: Job, session: Session, tmp_path: Path) -> None:
    pids = wait_for_processes(wandering)
    script = f"""
        ask("break wrong_values")
        open({str(tmp_path / "go")!r}, "w").close()
        tell("hits", hits({RANKS * ROUNDS}))
        tell("counted", [value("$_rank_hits(1)"), ask("info breakpoints")])
        let_go()
        """
    answers = attach(session, pids, script)
    count, shown = answers["counted"]
    assert count == RANKS * ROUNDS
    assert [line for line in shown.splitlines() if "already hit" in line] == [
        f"Breakpoint 1 already hit {RANKS * ROUNDS} times: {ROUNDS} times each by ranks 0-{RANKS - 1}"
    ], shown
    assert all(rank == own and name == "wrong_values" for _, rank, own, name in answers["hits"]), answers["hits"]
    expected = Counter(
        {(process + 1, rank): times for process in range(PROCESSES) for rank, times in visits(process).items() if times}
    )
    assert Counter((inferior, rank) for inferior, rank, _, _ in answers["hits"]) == expected
    assert "warning" not in "".join(answers["said"]) + answers.output, answers.output
    assert is_well_done(wandering), wandering.stderr()


@pytest.mark.parametrize("ignored", [7, RANKS * ROUNDS - 1])
def test_an_ignore_count_is_one_for_the_whole_job(
    ignored: int, wandering: Job, session: Session, tmp_path: Path
) -> None:
    """Whichever ranks come first, in whichever process: so many pass, all others stop, and each counts as a hit."""
    pids = wait_for_processes(wandering)
    script = f"""
        ask("break wrong_values")
        ask("ignore 1 {ignored}")
        (user,) = [one for one in gdb.breakpoints() if one.visible]
        tell("ignored", user.ignore_count)
        open({str(tmp_path / "go")!r}, "w").close()
        tell("hits", hits({RANKS * ROUNDS - ignored}))
        tell("left", [user.ignore_count, value("$_rank_hits(1)")])
        tell("each", [value("$_rank_hits(1, %d)" % rank) for rank in range({RANKS})])
        tell("more", hits(1))
        """
    answers = attach(session, pids, script)
    assert answers["ignored"] == ignored
    assert len(answers["hits"]) == RANKS * ROUNDS - ignored and answers["more"] == [], answers.output
    assert all(rank == own and name == "wrong_values" for _, rank, own, name in answers["hits"]), answers["hits"]
    assert answers["left"] == [0, RANKS * ROUNDS] and answers["each"] == [ROUNDS] * RANKS
    assert is_well_done(wandering), wandering.stderr()


def test_code_is_broken_into_in_the_process_alone_where_the_rank_is(
    wandering: Job, session: Session, tmp_path: Path
) -> None:
    """By the kernel, as GDB hides its own instructions: it puts a breakpoint at an address into every inferior."""
    pids = wait_for_processes(wandering)
    script = f"""
        from gdbext.gdb_api.breakpoint_locations import every_breakpoint

        def byte(pid, address):
            with open("/proc/%d/mem" % pid, "rb") as memory:
                memory.seek(address)
                return memory.read(1)[0]

        ask("set breakpoint always-inserted on")
        ask("break wrong_values")
        open({str(tmp_path / "go")!r}, "w").close()
        found = []
        for _ in range({RANKS * ROUNDS}):
            ask("continue")
            rows = [line.replace("*", " ").split() for line in ask("rank list").splitlines()[1:]]
            homes = {{int(row[0]): int(row[row.index("inferior") + 1]) for row in rows if "inferior" in row}}
            places = {{one.rank: one.address for one in every_breakpoint() if not one.visible and hasattr(one, "rank")}}
            found += [[homes[rank], [byte(pid, places[rank]) == 0xcc for pid in {pids}]] for rank in places]
        tell("found", found)
        let_go()
        """
    found = attach(session, pids, script)["found"]
    assert {home for home, _ in found} == {1, 2} and len(found) >= 2 * RANKS * ROUNDS
    assert all(broken == [home == 1, home == 2] for home, broken in found), found
    assert is_well_done(wandering), wandering.stderr()


@pytest.mark.parametrize(
    "command, ranks",
    [
        ("rank break wrong_values 1,2", {1, 2}),
        ("break wrong_values if $_rank == 3", {3}),
        ('break wrong_values if my_rank % 2 == 0 && $_rank_in("0-2")', {0, 2}),
    ],
)
def test_conditions_mean_the_rank_that_stops_in_whichever_inferior(
    command: str, ranks: set[int], wandering: Job, session: Session, tmp_path: Path
) -> None:
    pids = wait_for_processes(wandering)
    script = f"""
        ask({command!r})
        open({str(tmp_path / "go")!r}, "w").close()
        tell("hits", hits({len(ranks) * ROUNDS}))
        let_go()
        """
    answers = attach(session, pids, script)
    assert Counter(rank for _, rank, _, _ in answers["hits"]) == dict.fromkeys(ranks, ROUNDS), answers.output
    assert all(rank == own for _, rank, own, _ in answers["hits"])
    assert is_well_done(wandering), wandering.stderr()


def test_an_inferior_that_goes_leaves_the_others_as_they_were(wandering: Job, session: Session, tmp_path: Path) -> None:
    """Breakpoints go on to hit those who are in the process that is left, and spare the others."""
    pids = wait_for_processes(wandering)
    script = f"""
        ask("break wrong_values")
        ask("detach inferiors 2")
        tell("nowhere", [ask("rank"), ask("rank list 0")])
        ask("inferior 1")
        ask("remove-inferiors 2")
        tell("list", ask("rank list"))
        tell("gone", ask("rank 3"))
        open({str(tmp_path / "go")!r}, "w").close()
        tell("hits", hits({sum(visits(0).values())}))
        let_go()
        """
    answers = attach(session, pids, script)
    rank, row = answers["nowhere"]
    assert "No rank is selected" in rank and row.splitlines()[1].split()[:2] == ["0", "running"], answers["nowhere"]
    assert [line.replace("*", " ").split()[0] for line in answers["list"].splitlines()[1:]] == ["0", "1"]
    assert answers["gone"] == "error: rank 3 lives in another process of the job: this one has 0-1"
    assert all(rank == own for _, rank, own, _ in answers["hits"]), answers["hits"]
    assert Counter(rank for _, rank, _, _ in answers["hits"]) == +visits(0)
    assert is_well_done(wandering), wandering.stderr()


def test_processes_that_die_together_leave_the_selected_inferior(wandering: Job, session: Session) -> None:
    """GDB tells of one death at a time, and can't read the other's registers; it stays where it was."""
    pids = wait_for_processes(wandering)
    answers = attach(
        session,
        pids,
        f"""
        os.kill({pids[1]}, 9)
        ask("continue")
        found = []
        for command in ("rank list", "rank", "rank 0", "rank tree", "rank print my_rank", "rank apply all bt", "bt"):
            before = gdb.selected_inferior().num
            found.append([command, before, ask(command), gdb.selected_inferior().num])
        tell("found", found)
        """,
    )
    for command, before, said, after in answers["found"]:
        assert before == after and "Traceback" not in said, (command, before, said, after)
    assert "Python Exception" not in answers.output


def test_jobs_that_have_nothing_to_do_with_each_other_are_kept_apart(
    wandering: Job, start_job: StartJob, build: Build, rankrun: Path, session: Session, tmp_path: Path
) -> None:
    other = start_job(rankrun, "-n", 3, build("wander.c", "-O0", "-DSTAY"), tmp_path / "never")
    wait_until(lambda: are_running([other.pid]), "the other job's ranks did not come up")
    pids = wait_for_processes(wandering)
    answers = attach(
        session,
        [*pids, other.pid],
        """
        tell("third", [ask("rank list"), ask("rank 3"), value("$_rank_count")])
        ask("inferior 1")
        tell("first", [ask("rank list"), ask("rank 3"), value("$_rank_count")])
        """,
    )
    ranks, missing, count = answers["third"]
    numbers = [line.replace("*", " ").split()[0] for line in ranks.splitlines()[1:4]]
    assert numbers == ["0", "1", "2"] and count == 3
    assert "inferior 1 runs another job: select it, and rank numbers mean that one" in ranks
    assert missing == "error: there is no rank 3: this process has 0-2"
    ranks, found, count = answers["first"]
    assert "inferior 3 runs another job" in ranks and "in inferior 2 (" in found and count == RANKS


def test_processes_that_a_launcher_forks_become_one_job(
    build: Build, rankrun: Path, session: Session, tmp_path: Path
) -> None:
    """From the start: `detach-on-fork off`, breakpoints pending until the processes have loaded the program."""
    program = build("wander.c", "-O0")
    (tmp_path / "go").touch()
    script = f"""
{BEGIN}
ask("set detach-on-fork off")
ask("break wrong_values")
said = [ask("run")]
stops = [here()]
tell("stop", said)
tell("list", ask("rank list"))
tell("hits", stops + hits({RANKS * ROUNDS - 1}))
ask("delete")
for number in alive():
    if number > 1:
        ask("detach inferiors %d" % number)
ask("inferior 1")
ask("continue")
tell("alive", alive())
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, "--procs", PROCESSES, program, tmp_path / "go")
    assert all(rank == own and name == "wrong_values" for _, rank, own, name in answers["hits"]), answers["hits"]
    assert Counter(rank for _, rank, _, _ in answers["hits"]) == dict.fromkeys(range(RANKS), ROUNDS)
    assert len({inferior for inferior, _, _, _ in answers["hits"]}) == PROCESSES
    assert [line.replace("*", " ").split()[0] for line in answers["list"].splitlines()[1:]] == ["0", "1", "2", "3"]
    assert "SIGTRAP" not in answers.output and answers.output.count(": 0 wrong") == RANKS * ROUNDS, answers.output
    assert answers["alive"] == [], answers.output


ANSWERS = """
tell("answers", {command: ask(command) for command in ("rank list", "rank print my_rank", "rank diff size - my_rank",
                                                       "rank bt all", "rank tree", "rank find 3", "rank info 1")})
"""


def test_ranks_are_looked_at_without_warnings_of_gdb(wandering: Job, session: Session, tmp_path: Path) -> None:
    """GDB 13 looks for the location that it has stopped at among those that came in its place as symbols moved.

    It may still do so for a breakpoint of our own (below 0) at which the other process has stopped at the same time.
    """
    pids = wait_for_processes(wandering)
    script = f"""
        ask("break wrong_values")
        open({str(tmp_path / "go")!r}, "w").close()
        looked, owners = [], []
        for _ in range(8):
            ask("continue")
            own = value("my_rank")
            for command in ("rank print my_rank", "rank tree", "rank apply all -s bt 1", "rank 0", "rank list"):
                looked.append(ask(command))
            ask("rank %d" % own)
            looked.append(ask("print my_rank"))
            owners.append([own, value("my_rank"), value("$_rank")])
        tell("owners", owners)
        tell("looked", looked)
        let_go()
        """
    answers = attach(session, pids, script)
    assert len(answers["owners"]) == 8 and all(own == mine == rank for own, mine, rank in answers["owners"]), answers[
        "owners"
    ]
    assert len({own for own, _, _ in answers["owners"]}) > 1
    assert len(answers["looked"]) == 8 * 6
    assert not re.search(r"warning: location .* for breakpoint \d", "".join(answers["looked"]) + answers.output), (
        answers.output
    )
    assert is_well_done(wandering), wandering.stderr()


def test_core_files_of_a_job_answer_as_its_processes_did(
    wandering: Job, rankrun: Path, session: Session, tmp_path: Path
) -> None:
    pids = wait_for_processes(wandering)
    lines = (PROGRAMS / "wander.c").read_text().splitlines()
    after_last_move = next(number for number, line in enumerate(lines, 1) if "printf(" in line)
    cores = [tmp_path / f"process-{number}.core" for number in range(PROCESSES)]
    script = f"""
        ask("tbreak wander.c:{after_last_move} if round == {ROUNDS - 1}")
        open({str(tmp_path / "go")!r}, "w").close()
        hits(1)
        ask("inferior 1")
        {ANSWERS.strip()}
        ask("generate-core-file {cores[0]}")
        ask("inferior 2")
        ask("generate-core-file {cores[1]}")
        let_go()
        """
    live = attach(session, pids, script)["answers"]
    assert is_well_done(wandering), wandering.stderr()
    opened = f"""
ask("core-file {cores[0]}")
ask("add-inferior -no-connection")
ask("inferior 2")
ask("file {rankrun.resolve()}")
ask("core-file {cores[1]}")
ask("inferior 1")
{ANSWERS}"""
    dead = session.run(opened, rankrun.resolve())["answers"]
    assert live["rank print my_rank"].split() == [word for rank in range(RANKS) for word in (f"{rank}:", str(rank))]
    for command, answer in live.items():
        assert dead[command] == answer, command
