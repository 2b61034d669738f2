"""The commands' answers about a held job, against what the program says; and what they say to bad input."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.ranks.rankset import compact
from tests.support.gdb.places import RANKS, SOURCES, Places, hold, make_core
from tests.support.gdb.session import EXTENSION, Session
from tests.support.running import ROOT, Job, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until_it_loops

WAITS = ROOT / "tests" / "inspector" / "sources" / "waits.c"


def ask(session: Session, pid: int, *commands: str) -> list[str]:
    script = f"tell('answers', [ask(command) for command in {list(commands)!r}])\n"
    answers = session.attach(script, pid)["answers"]
    assert isinstance(answers, list)
    return answers


def test_list(session: Session, places: Places) -> None:
    every, blocked, state = ask(session, places.pid, "rank list", "rank list blocked", "rank list 0-3 --state running")
    rows = [line.split() for line in every.splitlines()]
    assert rows[0] == ["rank", "state", "PE", "thread", "waits", "in", "where"]
    assert [row[0] for row in rows[1:RANKS]] == [str(rank) for rank in range(RANKS - 1)]
    for rank, row in enumerate(rows[1:RANKS]):
        assert row[1] == "blocked"
        assert " ".join(row[4:]).startswith(f"MPI_Recv from {rank + 1}, tag 6 wait_for at places.c:")
    assert rows[RANKS][:3] == ["*", "3", "running"] and rows[RANKS][5:7] == ["spin", "at"]
    assert len(blocked.splitlines()) == RANKS
    assert [line.split()[1] for line in state.splitlines()[1:]] == ["3"]


def test_many_ranks_that_do_the_same_share_a_line(
    session: Session, tmp_path: Path, shared: Shared, rankcc: Path, rankrun: Path, start_job: StartJob
) -> None:
    """Of 40 ranks 39 wait for the last, which loops; `--all` has what a list of few ranks has."""
    program = shared.copied([rankcc, "-g", WAITS], tmp_path / "waits.so")
    job = start_job(rankrun, "-n", 40, program)
    job.wait_for("ready")
    wait_until_it_loops(job.pid)
    grouped, each, few = ask(session, job.pid, "rank list", "rank list --all", "rank list 0-31")
    rows = [line.replace("*", " ").split() for line in grouped.splitlines()]
    assert rows[0] == ["ranks", "state", "PE", "thread", "waits", "in", "where"]
    assert [row[:2] for row in rows[1:3]] == [["0-38", "blocked"], ["39", "running"]]
    assert " ".join(rows[1][4:]).startswith("MPI_Recv from 39, tag 7 receive at waits.c:")
    assert "`rank list --all` has a line for each rank" in grouped
    assert [line.replace("*", " ").split()[0] for line in each.splitlines()[1:]] == [str(rank) for rank in range(40)]
    assert len(few.splitlines()) == 1 + 32


def test_a_suspended_rank_has_no_thread_local_variable_of_a_library(session: Session, places: Places) -> None:
    """GDB itself reads the kernel thread's, which is the running rank's."""
    held = ask(
        session, places.pid, "set var errno = 77", "rank print errno", "rank print errno 1", "rank diff errno + 1"
    )
    why = "<errno is thread-local: GDB reads the kernel thread's, where this rank does not run>"
    assert held == ["", f"3: 77\n0-2: {why}\n", f"1: {why}\n", f"0-2: {why}\n3: 78\n"]


def test_each_rank_has_a_libc_of_its_own_under_pip(
    session: Session, start_job: StartJob, rankrun: Path, program: Path
) -> None:
    """GDB takes `errno` from the first libc, which no rank uses."""
    places = hold(start_job(rankrun, "-n", RANKS, "--method", "pip", program))
    (running,) = ask(session, places.pid, "rank print errno 3")
    assert "each rank has a copy of its library" in running


def test_ranks_are_chosen_by_function_without_their_symbols(session: Session, places: Places) -> None:
    """GDB takes 0.6 s a rank to go to each of them, in a large program with breakpoints."""
    script = """
from gdbext.extension import _extension
ask("rank 2")
before = _extension.debugger.state().focus.moves
chosen = [ask(f"rank {command} /{function}/") for command in ("list", "tree") for function in ("^spin", "^wait_for")]
chosen.append(ask("rank apply /^no_such/ print 1"))
tell("chosen", chosen)
tell("moves", _extension.debugger.state().focus.moves - before)
"""
    answers = session.attach(script, places.pid)
    spins, waits, spinning, waiting, none = answers["chosen"]
    assert re.findall(r"(?m)^.\s+(\d+) ", spins) == [str(RANKS - 1)] and f"[{RANKS - 1}]" in spinning
    assert re.findall(r"(?m)^.\s+(\d+) ", waits) == list(map(str, range(RANKS - 1))) and f"[0-{RANKS - 2}]" in waiting
    assert "= 1" not in none and answers["moves"] == 0


def test_print_and_diff(session: Session, places: Places) -> None:
    commands = {
        "rank print shared_name": [f"{rank}: {10 + rank}" for rank in range(RANKS)],
        "rank print shared_name 0-1,3": ["0: 10", "1: 11", "3: 13"],
        "rank print shared_name 2 0": ["0: 10", "2: 12"],
        "rank print 2 shared_name": ["2: 12"],
        "rank print 1-2 *pointer": ["1: 11", "2: 12"],
        "rank print 1 * shared_name": [f"{rank}: {10 + rank}" for rank in range(RANKS)],
        "rank print /x pair.second 3": ["3: 0x35"],
        "rank print table": [
            f"{rank}: {{{100 * rank}, {100 * rank + 1}, {100 * rank + 2}, 0}}" for rank in range(RANKS)
        ],
        "rank print running rank": ["3: 3"],
        "rank print /stay|wait_for/ peer": [f"{rank}: {rank + 1}" for rank in range(RANKS - 1)],
        "rank diff constant": ["0-3: 77"],
        "rank diff shared_name == 12": ["0-1,3: 0", "2: 1"],
        "rank print no_such_name": ['0-3: <No symbol "no_such_name" in current context>'],
        "rank diff no_such_name": ['0-3: <No symbol "no_such_name" in current context>'],
        "rank apply 1,3 -q output shared_name": ["11", "13"],
        "rank apply 0-1 -q rank": [
            f"Rank {rank} is selected because the command is applied to it: blocked in MPI_Recv from {rank + 1}, tag 6"
            for rank in (0, 1)
        ],
        "rank apply 1-2 -c print no_such_name": [
            "Rank 1, blocked in MPI_Recv from 2, tag 6:",
            'warning: No symbol "no_such_name" in current context',
            "Rank 2, blocked in MPI_Recv from 3, tag 6:",
            'warning: No symbol "no_such_name" in current context',
        ],
        "print $_rank_count": ["$1 = 4"],
    }
    answers = ask(session, places.pid, *commands)
    for answer, (command, expected) in zip(answers, commands.items()):
        assert answer.splitlines() == expected, command


def test_every_rank_has_its_own_address(session: Session, places: Places) -> None:
    script = f"""
    tell("addresses", [value(f'(long)$_rankaddr("{{name}}", {{rank}})') for rank in range({RANKS})
                       for name in ("shared_name", "file_static", "move_on")])
    tell("ranks", [value(f'$_rank_of($_rankaddr("shared_name", {{rank}}))') for rank in range({RANKS})])
    tell("nobody", value("$_rank_of(1)"))
    """
    answers = session.attach(script, places.pid)
    names = ("shared_name", "file_static", "move_on")
    assert answers["addresses"] == [places.owned[rank, name].address for rank in range(RANKS) for name in names]
    assert answers["ranks"] == list(range(RANKS))
    assert answers["nobody"] == -1


def test_whose_is_an_address(session: Session, places: Places) -> None:
    owned = places.owned[2, "file_static"]
    local = places.owned[1, "local"]
    code = places.owned[0, "move_on"]
    where, found, stack, text, nobody = ask(
        session,
        places.pid,
        f"rank where {owned.address:#x}",
        f"pieglobalsfind {owned.address + 1:#x}",
        f"pieglobalsfind {local.address:#x}",
        f"pieglobalsfind {code.address:#x}",
        "pieglobalsfind 0x10",
    )
    assert where.startswith(f"{owned.address:#x}: rank 2: data file_static (places+0x")
    rows = [line.split() for line in where.splitlines()[2:]]
    assert rows == [[str(rank), f"{places.owned[rank, 'file_static'].address:#x}"] for rank in range(RANKS)]
    assert "rank 2: data file_static+1 (places+0x" in found
    assert "rank 1: stack" in stack
    assert "rank 0: code move_on (places+0x" in text and f"places.c:{line_of('int move_on(int rank')}" in text
    assert "no owner" in nobody


def test_backtraces_of_many(session: Session, places: Places) -> None:
    every, some, full = ask(session, places.pid, "rank bt all", "rank bt 0,2", "rank bt 3 full")
    assert every.count("\nRank ") == RANKS - 1 and every.startswith("Rank 0, blocked in MPI_Recv from 1, tag 6:\n")
    assert every.count(" in main (argc=1, ") == RANKS
    assert some.count(" in wait_for (peer=") == 2 and "stay (rank=2, size=4)" in some
    assert "        turns = " in full and "        rank = 3" in full


def test_info(session: Session, places: Places) -> None:
    (info,) = ask(session, places.pid, "rank info 1")
    assert info.startswith("Rank 1 of 4, blocked in MPI_Recv from 2, tag 6\n")
    assert "method    pie" in info and "known by  registry" in info and "\nplaces " in info
    command = [str(built("inspector")), "payload", "--json", str(places.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (total,) = (load["total"] for load in json.loads(done.stdout)["payload"] if load["rank"] == 1)
    assert f"payload   {total} bytes: copies " in info


def line_of(text: str) -> int:
    """The number of the source line that begins with `text`, attributes aside."""
    lines = (SOURCES / "places.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


BAD = {
    "rank 4": "there is no rank 4: this process has 0-3",
    "rank x": "'x' is neither a rank nor a subcommand",
    "rank -1": "'-1' is neither a rank nor a subcommand",
    "rank 99999999999999999999": "is neither a rank nor a subcommand",
    "rank none 3": "`rank none` takes no arguments",
    "rank list 7": "there is no rank 7",
    "rank list 3-1": "is not a set of ranks",
    "rank list 0-4000000000": "there is no rank 4",
    "rank list 1 2": "one set of ranks",
    "rank list --state asleep": "is not a state",
    "rank bt 5": "there is no rank 5",
    "rank bt /(/": "is not a regular expression",
    "rank info 8": "there is no rank 8",
    "rank info 0 1": "is not a rank",
    "rank print": "no expression to print is given: rank print EXPR",
    "rank diff": "no expression to print is given: rank diff EXPR",
    "rank break move_on 2-7": "there is no rank 7",
    "rank print 0-2": None,
    "rank apply": "no ranks and no command",
    "rank apply 1": "no command to apply",
    "rank apply 1 no_such_command": 'Undefined command: "no_such_command"',
    "rank watch *(char(*)[64])&shared_name 1": "has 64 bytes, and the processor can watch 4 places of 8",
    "rank where": "no address is given",
    "pieglobalsfind": "no address is given",
    "pieglobalsfind no_such_name": 'No symbol "no_such_name" in current context',
    'print $_rankaddr("no_such_name", 0)': 'No symbol "no_such_name" in current context',
    'print $_rankaddr("shared_name", 9)': "there is no rank 9",
    "print $_rankaddr(1)": "takes 2 arguments",
}


def test_bad_input_is_answered_in_one_sentence(session: Session, places: Places) -> None:
    script = f"tell('answers', [ask(command) for command in {list(BAD)!r}] + [ask('rank print shared_name 1')])\n"
    answers = session.attach(script, places.pid)
    for command, answer in zip(BAD, answers["answers"]):
        expected = BAD[command]
        if expected is not None:
            assert answer.startswith("error: ") and expected in answer, command
            assert "\n" not in answer.strip(), command
    assert answers["answers"][-1] == "1: 11\n"
    assert "Traceback" not in answers.output and "Python Exception" not in answers.output


def test_trace_commands_shows_no_command_of_ours(session: Session, places: Places) -> None:
    script = """
    plain = [ask("rank diff shared_name"), ask("rank bt 1")]
    gdb.execute("set trace-commands on")
    traced = [ask("rank diff shared_name"), ask("rank bt 1")]
    tell("both", [plain, traced, gdb.parameter("trace-commands")])
    """
    plain, traced, is_on = session.attach(script, places.pid)["both"]
    assert [one.partition("\n")[2] for one in traced] == plain and is_on, traced


def test_without_a_program(session: Session) -> None:
    answers = session.run("tell('answers', [ask('rank list'), ask('rank 3'), ask('rank'), ask('rank none')])")
    for answer in answers["answers"]:
        assert answer.startswith("error: there is no process and no core file: run the program")


LISTS = ("show convenience", "show user", "help user-defined", "info frame-filter", "complete show user ")


def test_a_gdb_without_a_program_lists_nothing_of_ours(session: Session, places: Places) -> None:
    """Among what users define; with a process its functions are there, and users' filters of frames are alone."""
    script = f"""
tell("empty", [ask(command) for command in {LISTS}])
tell("attached", ask("attach {places.pid}"))
tell("functions", [ask("info frame-filter"), ask("output $_rank_count"), ask("output $_rank_hits(1) == 0")])
"""
    ours = session.run(script)
    plain = session.run(script, source=False)
    assert ours["empty"] == plain["empty"]
    assert ours["functions"][:2] == ["No frame filters.\n", str(RANKS)], ours.output
    assert "there is no breakpoint 1" in ours["functions"][2]


def test_a_program_without_ranks(session: Session, start_job: StartJob) -> None:
    job: Job = start_job("sh", "-c", "echo ready; read line < /dev/zero || sleep 600")
    job.wait_for("ready")
    answers = session.attach("tell('answers', [ask('rank list'), ask('rank print 1')])", job.pid)
    for answer in answers["answers"]:
        assert answer.startswith(f"error: process {job.pid} has no virtual ranks"), answers.output
    assert "Traceback" not in answers.output


def test_sourcing_twice_and_through_a_link(session: Session, places: Places, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere.py"
    link.symlink_to(EXTENSION)
    script = f"""
    gdb.execute("source {link}")
    gdb.execute("source {EXTENSION}")
    tell("value", ask("rank print shared_name 2"))
    tell("path", [one for one in sys.path if one.endswith("gdbext")])
    tell("names", sorted(name for name in globals() if "ranklens" in name))
    """
    answers = session.attach(script, places.pid)
    assert answers["value"] == "2: 12\n"
    assert answers["path"] == []
    assert answers["names"] == []


def test_help_and_completion(session: Session, places: Places) -> None:
    help_, completed, sets = ask(session, places.pid, "help rank", "complete rank b", "complete rank list bl")
    for word in (
        "rank apply",
        "rank bt",
        "rank diff",
        "rank info",
        "rank list",
        "rank none",
        "rank print",
        "rank where",
    ):
        assert f"{word} -- " in help_ or f"{word}, " in help_, word
    assert "rank bt" in completed
    assert "rank list blocked" in sets


@pytest.mark.parametrize("is_core", [False, True], ids=["live", "core"])
def test_reading_changes_nothing(
    session: Session, places: Places, rankrun: Path, tmp_path: Path, is_core: bool
) -> None:
    """Every byte that the target could have written is the same before and after all reading commands."""
    commands = ["rank list", "rank bt all", "rank bt all full", "rank 1", "bt", "info locals", "rank print table", "up"]
    commands += [
        "rank diff pair",
        "rank info 2",
        "rank where table",
        "rank apply all bt",
        "rank none",
        "list",
        "rank 3",
    ]
    script = f"""
    tell("before", digest())
    gdb.execute("source {EXTENSION}")
    tell("answers", [ask(command) for command in {commands!r}])
    tell("after", digest())
    """
    if is_core:
        core = make_core(places.pid, tmp_path)
        answers = session.run(
            digest_of(f"'{core}'") + script.replace("\n    ", "\n"), rankrun.resolve(), core, source=False
        )
    else:
        answers = session.run(digest_of("None") + script.replace("\n    ", "\n"), "-p", places.pid, source=False)
    assert not [answer for answer in answers["answers"] if answer.startswith("error")]
    assert answers["before"] == answers["after"]


def digest_of(core: str) -> str:
    """Python for GDB: a hash of all writable memory (of the core's whole file), read past GDB."""
    return f"""
import hashlib

def digest():
    total = hashlib.sha256()
    if {core} is not None:
        with open({core}, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    pid = gdb.selected_inferior().pid
    with open(f"/proc/{{pid}}/maps") as maps, open(f"/proc/{{pid}}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, able = line.split()[:2]
            start, end = (int(word, 16) for word in span.split("-"))
            if "r" in able and "[v" not in line:
                memory.seek(start)
                while start < end:
                    total.update(memory.read(min(end - start, 1 << 24)) or b"unreadable")
                    start += 1 << 24
    return total.hexdigest()
"""


def test_a_file_that_is_gone_is_told(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy" / "places"
    copy.parent.mkdir()
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    job = start_job(rankrun, "-n", RANKS, copy)
    job.wait_for("ready")
    core = make_core(job.pid, tmp_path)
    copy.unlink()
    answers = session.run("tell('list', ask('rank list'))\ntell('bt', ask('rank bt 0'))", rankrun.resolve(), core)
    rows = [line.split() for line in answers["list"].splitlines()]
    assert [row[0] for row in rows if "blocked" in row] == [str(rank) for rank in range(RANKS - 1)]
    assert (answers["list"] + answers.output).count("is not there any more") == 1, answers.output
    assert "set rank object-path" in answers.output and "Traceback" not in answers.output


def test_stripped_programs_have_functions(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    stripped = tmp_path / "places"
    subprocess.run(["strip", "-g", "-o", str(stripped), str(program)], check=True, timeout=60)
    job = start_job(rankrun, "-n", RANKS, stripped)
    job.wait_for("ready")
    script = """
    tell("functions", functions())
    gdb.execute("rank 1")
    tell("suspended", functions())
    tell("values", [value("(int)shared_name"), value("*(int *)&file_static")])
    """
    answers = session.attach(script, job.pid)
    assert answers["functions"][:3] == ["spin", "stay", "main"]
    at = answers["suspended"].index("wait_for")
    assert answers["suspended"][at : at + 3] == ["wait_for", "stay", "main"]
    assert answers["values"] == [11, 22]


def test_tree_is_what_every_ranks_backtrace_says(session: Session, places: Places) -> None:
    answers = session.attach(
        f"""
tell("tree", ask("rank tree"))
tell("one", ask("rank tree 1-2"))
tell("stacks", {{rank: ask(f"rank bt {{rank}}") for rank in range({RANKS})}})
""",
        places.pid,
    )
    tree = [re.fullmatch(r"[|` -]*(\w+) .*\[([\d,-]+)\]", line) for line in answers["tree"].splitlines()]
    ranks_of = {match.group(1): match.group(2) for match in tree if match}
    assert len(tree) == len(ranks_of) and None not in tree, answers["tree"]
    in_call: dict[str, list[int]] = {}
    for rank, text in answers["stacks"].items():
        for function in re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+) \(", text, re.MULTILINE):
            in_call.setdefault(function, []).append(int(rank))
    assert ranks_of == {name: compact(ranks) for name, ranks in in_call.items()}
    assert ranks_of["MPI_Recv"] == "0-2" and ranks_of["spin"] == "3" and ranks_of["main"] == "0-3"
    assert "[3]" not in answers["one"] and "[1-2]" in answers["one"]


def test_options_and_states_are_completed(session: Session) -> None:
    asked = {
        "rank list --": ["rank list --all", "rank list --state"],
        "rank print shared_name bl": ["rank print shared_name blocked"],
        "rank apply ru": ["rank apply running"],
        "rank apply 0-2 tbre": ["rank apply 0-2 tbreak"],
        "info ranks bl": ["info ranks blocked"],
        "rank list --st": ["rank list --state"],
        "rank list --state b": ["rank list --state blocked"],
        "rank list migrated-": ["rank list migrated-out"],
        "rank bt ru": ["rank bt running"],
        "rank bt 0-": [],
        "rank list --state a": [],
    }
    answers = session.run(f'tell("found", {{text: ask("complete " + text).splitlines() for text in {list(asked)}}})')
    assert answers["found"] == asked


def test_what_can_stand_nowhere_is_one_error(session: Session, places: Places) -> None:
    asked = ("rank 1-3", "rank print shared_name 0-", "rank print shared_name 3-1", 'print $_rank_in("x")')
    answers = session.run(
        f"""
from gdbext.gdb_api.run_commands import execute
def refused(text):
    try:
        return "no error: " + ask(text)
    except gdb.error as error:
        return str(error)
ask("attach {places.pid}")
tell("refused", [refused(text) for text in {list(asked)}])
tell("completed", [ask("complete rank print shared_na"), ask("complete rank print 1 + shared_na")])
tell("lists", [ask("rank list"), ask("info ranks")])
tell("internal", [ask("help maintenance"), ask("help internals"), ask("complete ranklens")])
"""
    )
    several, cut, reversed_, in_set = answers["refused"]
    assert "`rank bt 1-3`" in several
    assert "'0-' is not a set of ranks" in cut
    assert "'3-1' is not a set of ranks" in reversed_
    assert "'x' is not a set of ranks" in in_set
    assert answers["completed"] == ["rank print shared_name\n", "rank print 1 + shared_name\n"]
    assert answers["lists"][0] == answers["lists"][1]
    assert "maintenance ranklens-take-hits" in answers["internal"][0] and answers["internal"][2] == ""


FORTRAN_NAME = """
#include <mpi.h>
#include <stdio.h>
static int rank;
__attribute__((noinline)) void mpi_barrier_(void) { /* as AMPI links Fortran's names of calls into programs */
    MPI_Barrier(MPI_COMM_WORLD);
    rank = -rank;
}
static void meet(int turn) {
    int twice = 2 * (turn + rank);
    printf("ready %d\\n", twice);
    fflush(stdout);
    mpi_barrier_();
    rank = twice;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank)
        meet(20);
    for (;;)
        ;
}
"""


def test_the_program_s_own_function_is_who_called_fortran_s_name(
    session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path
) -> None:
    """Where it is in the program's file; expressions are the caller's, too."""
    source, program = tmp_path / "names.c", tmp_path / "names"
    source.write_text(FORTRAN_NAME)
    subprocess.run([built("rankcc"), "-g", "-O1", source, "-o", program], check=True, timeout=60)
    job = start_job(rankrun, "-n", 2, program)
    job.wait_for("ready")
    wait_until_it_loops(job.pid)
    listed, values = ask(session, job.pid, "rank list 1", "rank print twice 1")
    assert "meet at names.c:13" in listed and values == "1: 42\n"
