"""Ranks are threads: LLDB's own commands show them, live and in core files, and mean their own variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.debuggers import holds_up_commands
from tests.support.gdb.places import RANKS, Places, compile_program
from tests.support.host.script import Told
from tests.support.lldb.session import Session
from tests.support.running import StartJob

NOT_HELD_UP = "this LLDB calls nothing before its own commands: names follow `rank N`, not `thread select`"
USER_FRAMES = ("work", "wait_for", "spin", "stay", "main")

NATIVE = """
ranks = {}
for thread in process:
    one = {"name": thread.GetName(), "functions": functions(thread), "user": []}
    ask(f"thread select {thread.GetIndexID()}")
    one["bt"] = ask("bt")
    for frame in thread:
        if frame.GetFunctionName() not in ("wait_for", "spin", "stay", "main"):
            continue
        ask(f"frame select {frame.GetFrameID()}")
        answers = [frame.GetFunctionName(), {}, ask("frame variable"), printed("p file_static")]
        for name in ("shared_name", "constant", "file_static", "pair", "pointer", "table", "move_on", "spin"):
            answers[1][name] = value("(long)&" + name)
        one["user"].append(answers)
    ranks[thread.GetName().split(":")[0]] = one
tell("ranks", ranks)
tell("list", ask("thread list"))
tell("all", ask("bt all"))
tell("targets", ask("target variable shared_name"))
"""


def check(told: Told, places: Places) -> None:
    assert sorted(told["ranks"]) == [f"rank {rank}" for rank in range(RANKS)], told.output
    for rank in range(RANKS):
        one = told["ranks"][f"rank {rank}"]
        check_thread(one, rank)
        for function, addresses, locals_, static in one["user"]:
            for name, address in addresses.items():
                expected = places.owned.get((rank, name))
                assert expected is None or address == expected.address, f"rank {rank}, {function}: {name}"
            assert static.strip() == f"(int) {20 + 2 * rank}"
            if function in ("stay", "main"):
                assert f"(int) rank = {rank}\n" in locals_
    assert all(f"'rank {rank}: " in told["list"] for rank in range(RANKS))
    assert told["all"].count("`main(argc=1") == RANKS
    values = [f"(int) shared_name = {10 + rank}" for rank in range(RANKS)]
    assert sorted(line.strip() for line in told["targets"].splitlines()) == values, "the original is not a rank's"


def check_thread(one: dict[str, object], rank: int) -> None:
    running = rank == RANKS - 1
    name = f"rank {rank}: running" if running else f"rank {rank}: blocked in MPI_Recv from {rank + 1}, tag 6"
    assert one["name"] == name
    functions = [function for function in one["functions"] if function in USER_FRAMES]  # type: ignore[attr-defined]
    assert functions == ["spin" if running else "wait_for", "stay", "main"]
    assert f"stay(rank={rank}, size={RANKS})" in str(one["bt"])


def test_live(session: Session, places: Places) -> None:
    check(session.attach(NATIVE, places.pid), places)


def test_core(session: Session, places: Places, rankrun: Path, core: Path) -> None:
    check(session.run(NATIVE, rankrun.resolve(), "-c", core), places)


def test_names_follow_the_selected_rank_in_host_frames(session: Session, places: Places) -> None:
    """A frame of the MPI library has no variables of the program: names mean the selected rank's."""
    script = f"""
    found = []
    for rank in [*range({RANKS}), 1, 0]:
        ask(f"rank {{rank}}")
        found.append([value("(long)&shared_name"), value("shared_name"), printed("p shared_name")])
    tell("found", found)
    ask("rank none")
    tell("none", value("(long)&shared_name"))
    """
    answers = session.attach(script, places.pid)
    for rank, (address, found, text) in zip([*range(RANKS), 1, 0], answers["found"]):
        assert address == places.owned[rank, "shared_name"].address
        assert found == 10 + rank and text.strip() == f"(int) {10 + rank}"
    assert answers["none"] not in {owned.address for owned in places.owned.values()}


@pytest.mark.skipif(not holds_up_commands(), reason=NOT_HELD_UP)
def test_names_follow_thread_select_in_host_frames(session: Session, places: Places) -> None:
    """LLDB's own selection alone, which it tells nobody; the selected frame stays as well."""
    script = """
    found = []
    for thread in list(process) + list(process):
        ask(f"thread select {thread.GetIndexID()}")
        ask("frame select 0" if "running" in thread.GetName() else "frame select 1")
        before = ask("frame info")
        one = {"name": thread.GetName(), "p": ask("p shared_name"), "address": ask("p (long)&shared_name")}
        one |= {"expression": ask("expression -- file_static"), "target": ask("target variable shared_name")}
        one |= {"memory": ask("memory read -f d -s 4 -c 1 &shared_name"), "format": ask("p/x shared_name")}
        one |= {"kept": ask("frame info") == before, "rank": ask("rank")}
        found.append(one)
    tell("found", found)
    """
    answers = session.attach(script, places.pid)
    assert len(answers["found"]) == 2 * RANKS
    for one in answers["found"]:
        rank = int(one["name"].split()[1].rstrip(":"))
        assert one["p"] == f"(int) {10 + rank}\n" and one["expression"].endswith(f"= {20 + 2 * rank}\n"), one
        assert one["address"] == f"(long) {places.owned[rank, 'shared_name'].address}\n"
        assert one["target"].startswith(f"(int) shared_name = {10 + rank}\n")
        assert one["memory"].endswith(f": {10 + rank}\n") and one["format"] == f"(int) 0x{10 + rank:08x}\n"
        assert one["kept"] and one["rank"].startswith(f"Rank {rank} is selected"), one


@pytest.mark.skipif(not holds_up_commands(), reason=NOT_HELD_UP)
def test_what_is_selected_is_shown_before_symbols_move(session: Session, places: Places) -> None:
    """A thread of LLDB's own shows it; LLDB 19 hangs or crashes where modules change or the process runs meanwhile."""
    script = """
    def shown():
        with open("/proc/self/fd/1") as printed:
            return printed.read().count("* thread #")

    waiting = ("p shared_name", "rank print shared_name 0", "frame select 1")
    found, before = [], shown()
    for turn in range(40):
        running, *others = sorted(process, key=lambda one: "running" not in one.GetName())
        for thread, command in ((running, "thread step-inst"), *((others[turn % 3], one) for one in waiting)):
            ask(f"thread select {thread.GetIndexID()}")
            ask(command)
            found.append(shown() - before)
            before = shown()
    tell("found", found)
    """
    assert session.attach(script, places.pid)["found"] == [1] * 40 * 4


@pytest.mark.parametrize("most", [64, 1])
def test_the_frame_that_is_printed_is_the_selected_one(session: Session, places: Places, most: int) -> None:
    """Whether LLDB has the rank as a thread already or not; what other commands visit does not change it."""
    script = f"""
    ask("rank threads --most {most}")
    found = []
    for rank in [*range({RANKS}), 1, 1]:
        one = [rank, ask(f"rank {{rank}}"), ask("frame info"), ask("rank print shared_name") and ask("frame info")]
        found.append([*one, ask("up"), ask("frame variable")])
    tell("found", found)
    tell("applied", ask("rank apply all frame info"))
    """
    answers = session.attach(script, places.pid)
    for rank, answer, info, later, up, variables in answers["found"]:
        waits = rank < RANKS - 1
        printed = re.search(r"^#(\d+)", answer, re.M)
        assert printed is not None and info.startswith(f"frame #{printed[1]}: ") and later == info, answers.output
        assert ("`MPI_Recv" if waits else "`spin") in info
        assert ("`wait_for(peer=" if waits else "`stay(rank=") in up
        assert ("(int) peer = " if waits else "(int) size = ") in variables
    assert answers["applied"].count("`MPI_Recv") == RANKS - 1 and answers["applied"].count("`spin") == 1


@pytest.mark.parametrize("before", ["rank 1", "thread select 2", f"rank {RANKS - 1}"])
def test_without_a_rank_a_kernel_thread_is_selected(session: Session, places: Places, before: str) -> None:
    """What is said, what is marked in the thread list and what names mean agree."""
    script = f"""
    ask({before!r})
    tell("said", ask("rank none"))
    tell("rank", ask("rank"))
    tell("thread", [ask("thread list"), ask("bt"), ask("frame info")])
    tell("outside", value("(long)&shared_name"))
    tell("shown", printed("p (long)&shared_name"))
    ask("rank bt 1")
    tell("after", [ask("rank"), printed("p (long)&shared_name")])
    ask("frame select 0")
    tell("inside", printed("p shared_name"))
    """
    answers = session.attach(script, places.pid)
    last = RANKS - 1
    number = re.search(rf"frames are those of thread (\d+), on which rank {last} runs", answers["said"])
    assert number is not None, answers["said"]
    assert answers["rank"] == "No rank is selected because you asked for none\n"
    threads, backtrace, frame = answers["thread"]
    marked = [line for line in threads.splitlines() if line.startswith("*")]
    assert len(marked) == 1 and marked[0].startswith(f"* thread #{number[1]}: ") and f"'rank {last}: " in marked[0]
    assert f"stay(rank={last}, " in backtrace and "wait_for" not in backtrace
    assert "librankmpi.so" in frame, "the innermost frame that is in no rank's copy"
    assert answers["outside"] not in {owned.address for owned in places.owned.values()}
    assert answers["shown"] == f"(long) {answers['outside']}\n"
    assert answers["after"] == [answers["rank"], answers["shown"]]
    assert answers["inside"] == f"(int) {10 + last}\n", "in the rank's own frames globals are its own, as is said"


def test_continuing_and_stopping_again(session: Session, places: Places) -> None:
    script = """
    tell("selected", ask("rank 0") + ask("rank 3"))
    tell("step", ask("thread step-inst"))
    tell("threads", [thread.GetName() for thread in process])
    tell("list", ask("rank list"))
    tell("next", ask("next"))
    """
    answers = session.attach(script, places.pid)
    assert "rank 3: running" in answers["step"] and "instruction step" in answers["step"], answers.output
    assert answers["threads"][0] == "rank 3: running" and len(answers["threads"]) == RANKS
    assert "*     3  running" in answers["list"] and "step over" in answers["next"]


@pytest.mark.skipif(not holds_up_commands(), reason=NOT_HELD_UP)
@pytest.mark.parametrize("command", ["next", "step", "finish", "stepi", "thread until 1", "thread return"])
def test_a_step_in_a_suspended_rank_is_refused(session: Session, places: Places, command: str) -> None:
    """LLDB by itself lets the process run, and never ends the step; another rank's step is its own."""
    script = f"""
    ask("rank 1")
    before = process.GetStopID()
    ask({command!r})
    tell("stop", [before, process.GetStopID(), ask("rank")])
    tell("named", ask(f"thread step-inst {{next(one for one in process if 'running' in one.GetName()).GetIndexID()}}"))
    """
    answers = session.attach(script, places.pid)
    assert re.search(r"needs a rank that runs, and rank 1 is blocked in MPI_Recv", answers.output), answers.output
    before, after, selected = answers["stop"]
    assert before == after and selected.startswith("Rank 1 is selected because you asked for it"), answers.output
    assert "instruction step" in answers["named"], answers.output


@pytest.mark.parametrize("elements", [2, 3])
def test_every_kernel_thread_is_its_rank(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, elements: int
) -> None:
    job = start_job(rankrun, "-n", RANKS, "--pes", elements, program)
    job.wait_for("ready")
    script = """
    found = []
    for thread in process:
        for frame in thread:
            if frame.GetFunctionName() == "main":
                found.append([thread.GetName(), frame.FindVariable("rank").GetValueAsSigned(), thread.GetStopReason()])
    tell("found", found)
    tell("list", ask("rank bt running"))
    """
    answers = session.attach(script, job.pid)
    assert sorted(rank for _, rank, _ in answers["found"]) == list(range(RANKS))
    assert all(name.startswith(f"rank {rank}: ") for name, rank, _ in answers["found"]), answers["found"]
    assert "spin (rank=3)" in answers["list"]


def test_of_many_ranks_only_those_asked_for_are_threads(session: Session, places: Places) -> None:
    script = """
    def names():
        return sorted(thread.GetName().split(":")[0] for thread in process)

    tell("all", ask("rank threads"))
    tell("few", [ask("rank threads --most 2"), names()])
    tell("bt", [ask("rank bt 1"), names()])
    tell("set", [ask("rank threads 0"), names()])
    tell("every", [ask("rank bt all").count(" in main ("), ask("rank print shared_name")])
    tell("again", [ask("rank threads --most 4"), names()])
    tell("bad", [ask("rank threads --most x"), ask("rank threads 9")])
    """
    answers = session.attach(script, places.pid)
    assert answers["all"] == "All 4 ranks are threads (up to 64 would be)\n"
    assert "Of 4 ranks only those that run" in answers["few"][0] and answers["few"][1] == ["rank 3"]
    assert "wait_for (peer=2)" in answers["bt"][0] and "rank 1" in answers["bt"][1]
    assert answers["set"][1] == ["rank 0", "rank 3"] and "asked for: 0)" in answers["set"][0]
    assert answers["every"] == [RANKS, "".join(f"{rank}: {10 + rank}\n" for rank in range(RANKS))]
    assert answers["again"][1] == [f"rank {rank}" for rank in range(RANKS)]
    assert answers["bad"][0].startswith("error: --most takes one number") and "there is no rank 9" in answers["bad"][1]
    assert "ranklens: Of 4 ranks only those" in answers.output


def test_ranks_in_passing_look_as_they_would_as_threads(session: Session, places: Places) -> None:
    """One set of modules goes from rank to rank; breakpoints and what was selected are as before afterwards."""
    script = """
    commands = ["rank bt all", "rank print shared_name", "rank print *pointer", "rank print &table[2]", "rank tree",
                "rank print file_static + 1", "rank diff shared_name", "rank bt 0,2 full", "rank find 12",
                "rank apply 0-2 p shared_name", "rank apply all p file_static", "rank apply all bt"]

    def code():
        with open(f"/proc/{process.GetProcessID()}/mem", "rb") as memory:
            found = []
            for address in STARTS:
                memory.seek(address)
                found.append(memory.read(16).hex())
            return found

    before = code()
    every = [printed(command) for command in commands]
    ask("rank threads --most 1")
    ask("breakpoint set -n move_on")
    ask("rank 3")
    ask("frame select 1")
    place = ask("frame info")
    few = [printed(command) for command in commands]
    tell("answers", [list(row) for row in zip(commands, every, few)])
    tell("kept", ask("frame info") == place)
    tell("modules", len([one for one in target.modules if one.file.basename == "places"]))
    ask("breakpoint disable")
    tell("code", [one == other for one, other in zip(before, code())])
    """
    starts = [places.owned[rank, "move_on"].address for rank in range(RANKS)]
    answers = session.attach(script.replace("STARTS", repr(starts)), places.pid)
    for command, every, few in answers["answers"]:
        assert re.sub(r"(frame|thread) #\d+", "", few) == re.sub(r"(frame|thread) #\d+", "", every), command
    assert answers["kept"] and answers["code"] == [True] * RANKS, answers.output
    assert answers["modules"] <= 4, "of the ranks that were the first of a command, and that which runs"
    assert "Traceback" not in answers.output


def test_the_core_file_is_found_as_in_old_versions(session: Session, places: Places, rankrun: Path, core: Path) -> None:
    """LLDB 14 and 15 don't tell its path, but have it mapped, as newer ones do."""
    script = "from lldbext.lldb_api.target import mapped_core; tell('path', mapped_core())"
    answers = session.run(script, rankrun.resolve(), "-c", core)
    assert answers["path"] == str(core)


def test_links_of_an_ended_debugger_are_removed(session: Session, places: Places, tmp_path: Path) -> None:
    folders = []
    for _ in range(2):
        session.attach("tell('list', ask('thread list'))", places.pid)
        folders.append([path.name for path in tmp_path.glob("ranklens-lldb-*")])
    assert [len(folder) for folder in folders] == [1, 1] and folders[0] != folders[1]


SPLIT = """
ask("rank 1")
for command in ("bt", "p word", "rank bt 0-1", "rank print 1 word", "rank print 0-1 started", "rank bt /waiting/"):
    tell(command, ask(command))
level = process.GetSelectedThread().GetSelectedFrame().GetFrameID()
tell("level", level)
ask(f"frame select {level + 1}")
for turn in (1, 2):
    tell(f"locals {turn}", ask("frame variable"))
"""


def test_frames_that_lldb_takes_wrongly(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """LLDB 19 ends stacks behind functions that the compiler has split, and looks for their variables elsewhere.

    `rank bt` goes on and numbers on, `rank print` gives no such variable, and LLDB's own commands come with a warning.
    Of an LLDB that has the stack right nothing is replaced, and nothing is said.
    """
    program = compile_program("rankcxx", tmp_path, "split.cpp", "-O2")
    job = start_job(rankrun, "-n", 2, program)
    job.wait_for("ready")
    answers = session.attach(SPLIT, job.pid)
    if "`main(" in answers["bt"]:
        assert (
            re.findall(r"^#\d+ .*\b(waiting|between|main) \(", answers["rank bt /waiting/"], re.MULTILINE)
            == [
                *("waiting", "between", "main"),
            ]
            * 2
        )
        assert answers["rank print 0-1 started"] == "0: 0\n1: 0\n"
        assert "LLDB misreads" not in answers.output + "".join(map(str, answers.facts.values()))
        return
    for rank, stack in enumerate(answers["rank bt 0-1"].split("\n\n")):
        found = re.findall(r"^#(\d+) .*\b(waiting|between|main) \(\.\.\.\) at \S*split\.cpp:\d+$", stack, re.MULTILINE)
        first = int(found[0][0])
        assert first == (0 if rank == 0 else int(answers["level"]) + 1), stack
        named = [(str(first + at), name) for at, name in enumerate(("waiting", "between", "main"))]
        assert found == named, stack
    assert answers["rank bt /waiting/"] == answers["rank bt 0-1"]
    assert answers["rank print 1 word"] == "1: <word is a variable of waiting, whose frame LLDB misreads>\n"
    assert answers["rank print 0-1 started"] == "0: 0\n1: 0\n"
    assert answers.output.count("LLDB misreads this frame") == 1, "once, and not of the frames that are right"


def test_frames_behind_a_signal_s_handler(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """There LLDB knows more than the files' tables."""
    program = compile_program("rankcc", tmp_path, "handler.c", "-O0")
    job = start_job(rankrun, "-n", 1, program)
    job.wait_for("in the handler")
    answers = session.attach('ask("rank 0"); tell("bt", ask("rank bt 0")); tell("own", ask("bt"))', job.pid)
    named = re.compile(r"\b(handler|interrupted|main) ?\(")
    assert named.findall(answers["bt"]) == named.findall(answers["own"]) == ["handler", "interrupted", "main"], answers[
        "bt"
    ]
