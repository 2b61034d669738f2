"""After `rank N` GDB's own commands mean that rank: live and in core files, suspended and running."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.gdb.places import RANKS, SOURCES, Owned, Places, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.host.script import Told
from tests.support.running import StartJob
from tests.support.waiting import wait_until_it_loops

SCRIPT = f"""
answers = []
for rank in list(range({RANKS})) + [1, 0]:
    gdb.execute(f"rank {{rank}}")
    answer = {{"rank": rank, "selected": value("$_rank"), "functions": functions(), "bt": ask("bt"), "host": []}}
    for name in ("shared_name", "constant", "file_static", "move_on", "'places.c'::file_static"):
        answer["host"].append([name, value("(long)&" + name), ask("output " + name)])
    frame = gdb.newest_frame()
    while frame.name() != "work" and frame.name() != "stay":
        frame = frame.older()
    gdb.execute(f"frame level {{frame.older().level()}}", to_string=True)
    answer["main"] = gdb.selected_frame().name()
    answer["user"] = []
    for name in ("shared_name", "constant", "file_static", "pair", "pointer", "table", "move_on"):
        answer["user"].append([name, value("(long)&" + name), ask("output " + name)])
    answer["static"] = [value("(long)&move_on::calls"), value("move_on::calls")]
    answer["target"] = [value("(long)pointer"), value("*pointer")]
    answer["locals"] = ask("info locals")
    answer["symbol"] = ask("info symbol &pair.second")
    answer["list"] = ask("list")
    answers.append(answer)
tell("answers", answers)
"""


def own(places: Places, rank: int, name: str) -> Owned:
    return places.owned[rank, name]


def check(told: Told, places: Places) -> None:
    assert [one["rank"] for one in told["answers"]] == [*range(RANKS), 1, 0]
    for answer in told["answers"]:
        rank = answer["rank"]
        assert answer["selected"] == rank
        check_stack(answer, rank)
        check_globals(answer, rank, places)
        assert answer["main"] == "main"
        assert f"rank = {rank}\n" in answer["locals"] and f"size = {RANKS}\n" in answer["locals"]
        assert answer["symbol"].startswith("pair + 4 in section .data")
        assert "stay(rank, size);" in answer["list"]


def check_stack(answer: dict[str, Any], rank: int) -> None:
    functions = answer["functions"]
    users = ["spin", "stay", "main"] if rank == RANKS - 1 else ["wait_for", "stay", "main"]
    found = [name for name in functions if name in (*users, "wait_for", "spin")]
    assert found == users, f"rank {rank}: {functions}"
    lines = str(answer["bt"]).splitlines()
    assert re.match(r"#\d+ +0x[0-9a-f]+ in main \(argc=1, argv=0x[0-9a-f]+\) at .*places\.c:\d+", lines[-1]), lines
    shown = [line for line in lines if f"stay (rank={rank}, size={RANKS})" in line]
    assert len(shown) == 1, lines
    suspended = rank != RANKS - 1
    if suspended:
        folded = re.fullmatch(r"\((\d+) frames of the runtime folded\)", lines[0])
        assert folded and re.match(rf"#{int(folded.group(1)) + 1} +0x[0-9a-f]+ in MPI_Recv \(", lines[1]), lines
    else:
        assert lines[0].startswith("#0"), lines


def check_globals(answer: dict[str, Any], rank: int, places: Places) -> None:
    for where in ("host", "user"):
        for name, address, text in answer[where]:
            owned = own(places, rank, str(name).rpartition("::")[2])
            assert address == owned.address, f"rank {rank}, {where}: &{name} is {address:#x}, the program says {owned}"
            if name in ("shared_name", "constant", "file_static"):
                assert text == str(owned.value), f"rank {rank}, {where}: {name} is {text}, the program says {owned}"
    calls = own(places, rank, "calls")
    assert answer["static"] == [calls.address, calls.value]
    assert answer["target"] == [own(places, rank, "shared_name").address, own(places, rank, "shared_name").value]


def test_live(session: Session, places: Places) -> None:
    check(session.attach(SCRIPT, places.pid), places)


def test_core(session: Session, places: Places, rankrun: Path, core: Path) -> None:
    advice = """
gdb.execute("rank 1")
tell("refused", {command: ask(command) for command in ("step", "finish", "call move_on(1, 1)", "print move_on(1, 1)")})
gdb.execute("rank none")
try:
    gdb.execute("call pieglobalsfind($rip)")
except gdb.error:
    pass
"""
    answers = session.run(SCRIPT + advice, rankrun.resolve(), core)
    check(answers, places)
    for command in ("step", "finish", "call"):
        sentence = f"error: `{command}` needs a rank that runs, and nothing runs in a core file"
        assert any(said.startswith(sentence) for said in answers["refused"].values()), answers["refused"]
    for said in (answers["refused"]["call move_on(1, 1)"], answers.output):
        assert "the command `pieglobalsfind ADDRESS` reports which rank owns an address" in said
    assert answers["refused"]["print move_on(1, 1)"].startswith("error: You can't do that without a process to debug")


def test_the_running_rank_is_selected_on_arrival(session: Session, places: Places) -> None:
    answers = session.attach(
        'tell("rank", value("$_rank")); tell("bt", ask("bt")); tell("why", ask("rank"))', places.pid
    )
    assert answers["rank"] == RANKS - 1
    assert "spin (rank=3)" in answers["bt"].splitlines()[0]
    assert answers["why"].startswith("Rank 3 is selected because it runs on the stopped thread 1")


def test_none_means_the_original(session: Session, places: Places) -> None:
    script = """
    gdb.execute("rank 1")
    gdb.execute("rank none")
    tell("selected", value("$_rank"))
    tell("value", value("shared_name"))
    tell("address", value("(long)&shared_name"))
    tell("why", ask("rank"))
    tell("bt", ask("bt"))
    """
    answers = session.attach(script, places.pid)
    assert answers["selected"] == -1
    assert answers["value"] == 10
    assert answers["address"] not in {owned.address for owned in places.owned.values()}
    assert answers["why"] == "No rank is selected because you asked for none\n"


def test_a_selection_that_fails_changes_nothing(session: Session, places: Places) -> None:
    script = """
    gdb.execute("rank 1")
    gdb.execute("frame function stay")
    before = ask("frame")
    tell("error", ask("rank 99"))
    tell("same", before == ask("frame"))
    tell("value", value("shared_name"))
    """
    answers = session.attach(script, places.pid)
    assert answers["error"] == "error: there is no rank 99: this process has 0-3"
    assert answers["same"] and answers["value"] == 11


def test_continuing_ends_the_selection_of_a_suspended_rank(session: Session, places: Places) -> None:
    script = """
    gdb.execute("rank 0")
    gdb.execute("tbreak places.c:43")
    gdb.execute("continue")
    tell("rank", value("$_rank"))
    tell("functions", functions())
    """
    answers = session.attach(script, places.pid)
    assert answers["rank"] == RANKS - 1
    assert answers["functions"][0] == "spin" and "wait_for" not in answers["functions"]


@pytest.mark.parametrize("elements", [2])
def test_every_thread_has_its_rank(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, elements: int
) -> None:
    job = start_job(rankrun, "-n", RANKS, "--pes", elements, program)
    job.wait_for("ready")
    script = """
    gdb.execute("rank 3")
    tell("thread", gdb.selected_thread().num)
    tell("running", ask("rank bt running"))
    tell("all", ask("rank diff shared_name"))
    tell("still", value("$_rank"))
    """
    answers = session.attach(script, job.pid)
    assert "spin (rank=3)" in answers["running"]
    assert answers["still"] == 3
    assert answers["all"] == "".join(f"{rank}: {10 + rank}\n" for rank in range(RANKS))


def test_no_register_of_a_running_rank_is_written_for_a_suspended_one(places: Places, session: Session) -> None:
    """GDB writes a register that is the same in several frames to the thread, on which another rank runs."""
    answers = session.attach(
        """
        REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp rip r8 r9 r10 r11 r12 r13 r14 r15".split()

        def thread():
            ask("rank none")
            ask("frame 0")
            return [value("(unsigned long) $" + name) for name in REGISTERS]

        before = thread()
        ask("set rank fold-runtime off")
        ask("rank 1")
        levels = [int(line.split()[0][1:]) for line in ask("bt").splitlines() if line.startswith("#")]
        said = {}
        for level in levels:
            for name in REGISTERS:
                ask("rank 1")
                ask("frame %d" % level)
                was = ask("output $" + name)
                answer = ask("set var $%s = $%s + 1" % (name, name))
                if "is unchanged" in answer:
                    now = [ask("output $" + name), value("$_rank"), gdb.selected_frame().level()]
                    said["%d %s" % (level, name)] = [was, *now]
                elif not answer:
                    ask("set var $%s = %s" % (name, was.split()[-1] if was.startswith("(") else was))
        tell("levels", levels)
        tell("said", said)
        tell("same", thread() == before)
        ask("set var $r12 = 0x5151")
        ask("rank 1")
        ask("rank none")
        tell("own", value("$r12"))
        ask("set var $r12 = %d" % before[REGISTERS.index("r12")])
        """,
        places.pid,
    )
    assert answers["same"] and answers["own"] == 0x5151, answers.output
    assert answers["said"], "GDB no longer writes the thread's registers by itself"
    for key, (was, after, rank, level) in answers["said"].items():
        assert was == after and rank == 1 and level == int(key.split()[0]), (key, answers["said"])


def test_down_ends_at_the_rank_and_a_thread_means_the_rank_on_it(places: Places, session: Session) -> None:
    """The frame behind which a suspended rank's frames are put is not the rank's."""
    answers = session.attach(
        """
        ask("set rank fold-runtime off")
        ask("rank 1")
        tell("down", ask("down"))
        ask("up")
        up = gdb.selected_frame().level()
        ask("down")
        tell("back", [up, gdb.selected_frame().level()])
        tell("thread", [ask("thread"), value("$_rank")])
        tell("thread 1", [ask("thread 1"), value("$_rank"), gdb.selected_frame().level(), ask("rank")])
        tell("bottom", ask("down"))
        """,
        places.pid,
    )
    assert answers["down"] == answers["bottom"] == "error: Bottom (innermost) frame selected; you cannot go down."
    assert answers["back"] == [2, 1]
    said, rank = answers["thread"]
    assert "Current thread is 1" in said and rank == 1
    said, rank, level, why = answers["thread 1"]
    assert f"[Rank {RANKS - 1} runs here]" in said and (rank, level) == (RANKS - 1, 0)
    assert "because it runs on the stopped thread" in why


def test_front_ends_and_windows_are_told(places: Places, gdb: Path) -> None:
    """By GDB's own notification, which `layout src` goes by too."""
    wait_until_it_loops(places.pid)
    command = [str(gdb), "-nx", "-q", "--interpreter=mi", "-iex", "set debuginfod enabled off", "-p", str(places.pid)]
    typed = f"source {EXTENSION}\nrank 1\nrank 3\nrank 0\n-gdb-exit\n"
    done = subprocess.run(  # GDB 17 sends a character of several bytes as if each were one
        command, input=typed, capture_output=True, text=True, errors="replace", timeout=120, check=True
    )
    told = re.findall(r'^=thread-selected,.*frame={level="\d+",.*?func="(\w+)"', done.stdout, re.M)
    assert told == ["MPI_Recv", "spin", "MPI_Recv"]
    assert re.findall(r"Switching to rank (\d)", done.stdout) == ["1", "3", "0"]
    arrived = done.stdout.partition("Switching to rank")[0]  # GDB 18 says "Switching to thread 1" as it attaches
    assert "[Rank 3 runs here]" in arrived and "#0  spin (rank=3)" in arrived


@pytest.mark.parametrize("method", ["none", "swap", "pie"])
def test_ranks_wait_while_another_stands_in_main(
    session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, method: str
) -> None:
    """GDB asks for no caller of `main`, as which a suspended rank poses where ranks run in the program itself."""
    program = compile_program("rankcc", tmp_path, "in_main.c", *(("--method", "swap") if method == "swap" else ()))
    job = start_job(rankrun, "-n", 3, "--method", method, program)
    job.wait_for("ready")
    lines = (SOURCES / "in_main.c").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "/* here */" in text)
    answers = session.attach(
        f"""
gdb.execute("tbreak in_main.c:{line}")
gdb.execute("continue")
tell("thread", [gdb.newest_frame().name(), ask("bt")])
stacks = []
for rank in (0, 1, 0):
    gdb.execute(f"rank {{rank}}")
    stacks.append([words.split(" (")[0].split()[-1] for words in ask("bt").splitlines() if words.startswith("#")])
tell("stacks", stacks)
tell("all", ask("rank bt all"))
gdb.execute("tbreak in_main.c:{line}")
gdb.execute("continue")
tell("stopped again", [value("$_rank"), gdb.newest_frame().name()])
tell("setting", ask("show backtrace past-main"))
gdb.execute("rank none")
tell("thread again", ask("bt"))
gdb.execute("set backtrace past-main on")
gdb.execute("rank 1")
tell("beyond", ask("bt"))
gdb.execute("rank none")
tell("user's", ask("show backtrace past-main"))
""",
        job.pid,
    )
    assert answers["thread"][0] == "main"
    assert method == "pie" or answers["thread again"] == answers["thread"][1]
    waits = [["MPI_Recv", *["wait_deep"] * (rank + 1), "main"] for rank in (0, 1, 0)]
    assert answers["stacks"] == waits, answers.output
    assert answers["all"].count("wait_deep (depth=0)") == 2 and "can't be unwound" not in answers["all"]
    assert answers["stopped again"] == [2, "main"]
    assert answers["setting"].endswith("is off.\n") and answers["user's"].endswith("is on.\n")
    assert "main (argc=" in answers["beyond"] and not answers["beyond"].splitlines()[-1].split(" (")[0].endswith(
        " main"
    )


@pytest.mark.parametrize("rank", [1, RANKS - 1], ids=["suspended", "running"])
@pytest.mark.parametrize("command", ["rank print shared_name", "rank diff shared_name", "rank list", "rank bt 0,2"])
def test_a_listing_goes_on_at_the_selected_frame(rank: int, command: str, places: Places, session: Session) -> None:
    """Not at `main`, where GDB begins once it has forgotten the symbols of the file that it has listed."""
    script = f"""
gdb.execute("rank {rank}")
found = []
for command in ("echo", {command!r}):
    ask("frame function stay")
    ask(command)
    found.append([ask("info line"), ask("list")])
tell("found", found)
"""
    before, after = session.attach(script, places.pid)["found"]
    assert "places.c" in before[0] and before == after


def test_lines_of_functions_end_in_the_ranks_own_copy(places: Places, session: Session) -> None:
    """After attaching, `rank N` and a stop: where lines, breakpoints and instructions of every function lie."""
    script = f"""
import re
found = []

def look(rank, when):
    for name in ("say", "move_on", "spin", "wait_for", "stay", "work", "main"):
        for command in ("info line %s", "x/2i %s", "info address %s", "print %s", "info line places.c:43"):
            told_here = ask(command % name if "%" in command else command)
            addresses = re.findall("0x[0-9a-f]{{9,16}}", told_here.replace("call ", ""))
            found.append([when, rank, command % name if "%" in command else command, told_here,
                          [value("$_rank_of(%s)" % one) for one in addresses]])

look({RANKS - 1}, "attached")
for rank in (0, {RANKS - 1}, 1, 2, 0):
    ask("rank %d" % rank)
    look(rank, "selected")
ask("rank {RANKS - 1}")
ask("stepi")
look({RANKS - 1}, "stopped")
tell("found", found)
"""
    found = session.attach(script, places.pid)["found"]
    assert len(found) == 7 * 7 * 5
    for when, rank, command, said, owners in found:
        assert owners and set(owners) == {rank}, (when, rank, command, said, owners)
