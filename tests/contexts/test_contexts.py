"""Saved contexts of a program without ranks: backtraces equal GDB's own of the same fibers when they were suspended."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import saved_context
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.session import suspended
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from tests.support.debuggers import find_lldb
from tests.support.gdb.places import make_core
from tests.support.gdb.session import Session
from tests.support.host.script import Told
from tests.support.lldb.session import Session as LldbSession
from tests.support.running import StartJob

SOURCE = Path(__file__).resolve().parent / "fibers.cpp"
FIBERS = {  # name -> the kind of its context, and an expression for it in main()
    "fcontext": ("fcontext", "fctx"),
    "fiber": ("fcontext", "*(void **)&fiber"),
    "ucontext": ("ucontext", "fiber_ucontext"),
    "jmp_buf": ("jmp_buf", "fiber_jmp_buf"),
}
SCRIPT = """
for function in ("jump_fcontext", "swapcontext", "_setjmp", "hold"):
    ask("break " + function)
ask("run")
while gdb.newest_frame().name() != "hold":
    text = ask("bt")
    for name in fibers:
        if "leaf_" + name + " (" in text:
            tell("suspended " + name, text)
    ask("continue")
tell("guard", value("*(unsigned long *)($fs_base + 0x30)") % (1 << 64))
from gdbext.gdb_api.target import open_inferior
from pieglobalsfind.decoders import saved_context
target = open_inferior()
tell("found guard", saved_context.pointer_guard(target, target.maps()))
for name, (kind, expression) in fibers.items():
    ask("rank context none")
    ask("frame function main")
    tell("context " + name, ask("rank context %s %s" % (kind, expression)))
    tell("bt " + name, ask("bt"))
    while gdb.selected_frame().name() != "leaf_" + name:
        ask("up")
    tell("locals " + name, ask("info locals"))
    ask("up")
    tell("arguments " + name, ask("info args"))
    tell("call " + name, ask("print middle_ucontext(1)"))
ask("rank context none")
ask("frame function main")
tell("fresh", ask("rank context ucontext fresh_ucontext"))
tell("fresh bt", ask("bt 1"))
ask("rank context ucontext fiber_ucontext")
ask("thread 2")
tell("other thread", ask("bt"))
ask("thread 1")
tell("fiber again", ask("bt"))
ask("rank context none")
tell("thread's own", ask("bt 1"))
for number, words in enumerate(bad):
    tell("bad %d" % number, ask("rank context " + words))
tell("still the thread's own", ask("bt 1"))
ask("set variable go = 1")
ask("delete")
ask("continue")
tell("exited", value("$_exitcode"))
"""
BAD = {
    "": "a context is a kind and an address",
    "fcontext": "a context is a kind and an address",
    "coroutine 1": "'coroutine' is not a kind of saved context: these are: fcontext, ucontext, jmp_buf",
    "fcontext 8": "there is no fcontext at 0x8, cannot read",
    "fcontext &sum + 100000000000": "there is no fcontext at",
    "jmp_buf &unused": "is not a jmp_buf of a suspended thread, it",
    "ucontext main": "is not a ucontext of a suspended thread, it",
    "ucontext (char *)&fiber_ucontext + 4": "is not a ucontext of a suspended thread, it",
    "fcontext nobody": 'No symbol "nobody" in current context',
}


@dataclass(frozen=True)
class Held:
    """The program, all of its fibers suspended; by name the kind and the address of their contexts."""

    pid: int
    contexts: dict[str, tuple[str, int]]


@pytest.fixture(scope="session")
def fibers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("fibers") / "fibers"
    subprocess.run(["g++", "-g", "-O0", SOURCE, "-o", program, "-lboost_context"], check=True, timeout=120)
    return program


@pytest.fixture(scope="session")
def told(gdb: Path, fibers: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What GDB says of the fibers as they are suspended, and later by their contexts."""
    script = f"fibers = {FIBERS!r}\nbad = {list(BAD)!r}\n{SCRIPT}"
    return Session(gdb, tmp_path_factory.mktemp("session")).run(script, fibers)


@pytest.fixture
def held(start_job: StartJob, fibers: Path) -> Held:
    job = start_job(fibers)
    job.wait_for("held")
    said = [line.split() for line in job.lines if len(line.split()) == 3]
    return Held(job.pid, {name: (kind, int(address, 16)) for name, kind, address in said})


def frame_lines(text: str) -> list[str]:
    """The frames of a backtrace, without their numbers."""
    return [re.sub(r"^#\d+\s+", "", line) for line in text.splitlines() if line.startswith("#")]


def own_calls(lines: list[str]) -> list[tuple[str, int]]:
    """The functions of the program's own file, and where they are in it."""
    found = (re.search(r"in (\w+)(?:\(.*\))? \(.*fibers\.cpp:(\d+)$", line) for line in lines)
    return [(match[1], int(match[2])) for match in found if match is not None]


@pytest.mark.parametrize("name", FIBERS)
def test_gdb_shows_what_it_showed_when_the_fiber_was_suspended(told: Told, name: str) -> None:
    """Frame by frame: pc, function, arguments, line; the first is what the fiber called to be suspended."""
    before = frame_lines(told[f"suspended {name}"])[1:]
    assert [function for function, _ in own_calls(before)] == [f"leaf_{name}", f"middle_{name}", f"enter_{name}"]
    assert frame_lines(told[f"context {name}"]) == before
    shown = [re.sub(r"\) at (\S+\.so[.\d]*)$", r") from \1", line) for line in frame_lines(told[f"bt {name}"])]
    assert shown == before, "but for GDB's `at`, before a library's name, where it asks frame filters"
    local = {"fcontext": 20, "fiber": 300, "ucontext": 4000, "jmp_buf": 50000}[name]
    assert f"local = {local}" in told[f"locals {name}"]
    assert f"turn = {int(str(local)[0]) - 1}" in told[f"arguments {name}"]
    assert "may-call-functions is off" in told[f"call {name}"]


def test_a_context_that_was_never_entered_begins_where_it_will(told: Told) -> None:
    line = 1 + SOURCE.read_text().splitlines().index("static void enter_ucontext() {")
    assert own_calls(frame_lines(told["fresh"])) == [("enter_ucontext", line)]
    assert told["fresh bt"] == told["thread's own"], "GDB has no way to show it"


def test_another_thread_is_not_the_fiber(told: Told) -> None:
    """In a script, where GDB tells nobody that another thread was selected."""
    assert own_calls(frame_lines(told["other thread"]))[-1][0] == "other_thread"
    assert own_calls(frame_lines(told["fiber again"])) == own_calls(frame_lines(told["suspended ucontext"]))


def test_gdb_comes_back_and_the_fibers_go_on(told: Told) -> None:
    assert frame_lines(told["thread's own"])[0].startswith(("hold ()", "0x")) and "hold" in told["thread's own"]
    for number, (words, said) in enumerate(BAD.items()):
        assert said in told[f"bad {number}"], words
    assert told["still the thread's own"] == told["thread's own"]
    assert told["exited"] == 0, "the fibers' sum is wrong"


def test_the_guard_is_the_threads_own(told: Told) -> None:
    assert told["found guard"] == told["guard"] != 0


def check(target: Target, held: Held, told: Told) -> None:
    for name, (kind, address) in held.contexts.items():
        backtrace = suspended.backtrace(target, kind, address)
        calls = [(frame.function, frame.line) for frame in backtrace.frames if frame.file == str(SOURCE)]
        assert calls == own_calls(frame_lines(told[f"suspended {name}"])), name
        assert [frame.level for frame in backtrace.frames] == list(range(len(backtrace.frames)))


def test_a_running_process_by_the_library(held: Held, told: Told) -> None:
    assert set(held.contexts) == set(FIBERS)
    target = open_target(pid=held.pid)
    check(target, held, told)
    with pytest.raises(UsageError, match="'qt' is not a kind of saved context"):
        suspended.backtrace(target, "qt", 0x1000)
    for kind in saved_context.KINDS:
        with pytest.raises(RanklensError, match=f"there is no {kind} at 0x10, cannot read"):
            suspended.backtrace(target, kind, 0x10)


def test_a_core_file_by_the_library_and_in_gdb(held: Held, told: Told, fibers: Path, gdb: Path, tmp_path: Path) -> None:
    core = make_core(held.pid, tmp_path)
    check(open_target(core=str(core), exe=str(fibers)), held, told)
    script = "".join(
        f"tell({name!r}, ask('rank context {kind} {address:#x}'))\n" for name, (kind, address) in held.contexts.items()
    )
    shown = Session(gdb, tmp_path).run(script, fibers, core)
    for name in FIBERS:
        assert own_calls(frame_lines(shown[name])) == own_calls(frame_lines(told[f"suspended {name}"])), name


def test_lldb_shows_the_same_calls(held: Held, told: Told, tmp_path: Path) -> None:
    script = "".join(
        f"tell({name!r}, ask('rank context {kind} {address:#x}'))\n" for name, (kind, address) in held.contexts.items()
    )
    script += "tell('bad', ask('rank context jmp_buf 8'))\n"
    shown: Any = LldbSession(find_lldb(), tmp_path).attach(script, held.pid)
    for name in FIBERS:
        assert own_calls(frame_lines(shown[name])) == own_calls(frame_lines(told[f"suspended {name}"])), name
    assert "there is no jmp_buf at 0x8" in shown["bad"]


def test_fibers_of_ranks_have_their_rank_s_globals(
    start_job: StartJob, rankrun: Path, rankcc: Path, gdb: Path, tmp_path: Path
) -> None:
    """They are in the rank's own copies; afterwards the rank that runs is selected again."""
    program = tmp_path / "rank_fiber"
    subprocess.run([rankcc, "-g", "-O0", SOURCE.with_name("rank_fiber.c"), "-o", program], check=True, timeout=120)
    job = start_job(rankrun, "-n", 3, program)
    job.wait_for("held")
    script = """
    for rank in (1, 0):
        text = ask('rank context ucontext $_rankaddr("fiber", %d)' % rank)
        tell("fiber of %d" % rank, text)
        tell("values of %d" % rank, [value("my_rank"), value("local"), value("number")])
    ask("rank context none")
    tell("rank", ask("rank"))
    tell("value", value("my_rank"))
    """
    shown = Session(gdb, tmp_path).attach(script, job.pid)
    for rank in (1, 0):
        lines = frame_lines(shown[f"fiber of {rank}"])
        assert f" in leaf (number={rank}) at " in lines[0] and " in enter () at " in lines[1]
        assert shown[f"values of {rank}"] == [rank, 10 * rank, rank]
    assert "Rank 2 is selected because it runs" in shown["rank"] and shown["value"] == 2
