"""Thread-local variables of a program and of libraries: each debugger shows what the ranks print, or refuses.

GDB up to 16 asks the server where a variable is; GDB 17 and newer and LLDB find it, GDB by counting libraries.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.serve.ranks.thread_control_block import ELSEWHERE, MOST_MODULES, MadeUpMemory, Modules
from tests.support.debuggers import find_lldb, lldb_version
from tests.support.gdb.session import Session
from tests.support.lldb.session import Session as LldbSession
from tests.support.rsp import BASE, listening
from tests.support.running import Job, StartJob, built

SOURCES = Path(__file__).parent / "sources"
RANKS = 3
NAMES = ("own", "first", "second")
GDB_SCRIPT = """
ask("set sysroot /")
ask("set remotetimeout 60")
ask("target extended-remote | INSPECTOR serve PID")
looks = []
def look(number):
    looks.append([number, {name: ask("output " + name) for name in NAMES}])
    tell("looks", looks)
def read(number):
    ask("attach %d" % (BASE + number))
    look(number)
read(1)
ask("detach")
read(2)
ask("add-inferior")
ask("inferior 2")
read(0)
ask("inferior 1")
look(2)
ask("nosharedlibrary")
ask("sharedlibrary")
look(2)
"""
LLDB_SCRIPT = """
ask("settings set plugin.process.gdb-remote.packet-timeout 60")
target = debugger.CreateTarget("PROGRAM")
thread = connected(target, "ADDRESS").GetThreadAtIndex(0)
frames = [frame for frame in thread if frame.GetFunctionName() == "hold"]
values = {name: frames[0].EvaluateExpression(name) for name in NAMES} if frames else {}
shown = {name: str(one.GetError()) if one.GetError().Fail() else one.GetValue() for name, one in values.items()}
tell("looks", [[RANK, shown]])
ask("process detach")
"""


@pytest.fixture
def held(start_job: StartJob, rankrun: Path, tmp_path: Path) -> Job:
    for name in ("first", "second"):
        options = ["--method=tls", "-shared", "-fPIC", "-g", "-O0", "-o", tmp_path / f"lib{name}.so"]
        assert start_job(built("rankcc"), *options, SOURCES / f"{name}.c").finish() == 0
    linked = ["-L", tmp_path, "-lfirst", f"-Wl,-rpath,{tmp_path}"]
    options = ["--method=tls", "-g", "-O0", "-o", tmp_path / "own", SOURCES / "own.c", *linked]
    assert start_job(built("rankcc"), *options).finish() == 0
    job = start_job(rankrun, "-n", RANKS, "--method", "tls", tmp_path / "own", tmp_path / "libsecond.so")
    job.wait_for("ready")
    return job


def truth(job: Job) -> dict[int, dict[str, str]]:
    lines = (re.match(r"rank (\d+): (\d+) (\d+) (\d+)", line) for line in job.lines)
    return {int(line[1]): dict(zip(NAMES, line.groups()[1:])) for line in lines if line}


def check(looks: list[tuple[int, dict[str, str]]], owned: dict[int, dict[str, str]]) -> None:
    """The program's own and the linked library's are shown; of the other one nothing but what is there."""
    for number, values in looks:
        for name in ("own", "first"):
            assert values[name] == owned[number][name], (number, looks)
        shown = values["second"]
        assert shown == owned[number]["second"] or not re.fullmatch(r"-?\d+", shown), (number, looks)


def test_by_gdb(held: Job, gdb: Path, tmp_path: Path) -> None:
    words = {"PID": str(held.pid), "INSPECTOR": str(built("inspector")), "NAMES": repr(NAMES), "BASE": str(BASE)}
    script = GDB_SCRIPT
    for name, value in words.items():
        script = script.replace(name, value)
    answers = Session(gdb, tmp_path).run(script, source=False)
    assert len(answers["looks"]) == 5
    check(answers["looks"], truth(held))


@pytest.mark.skipif(lldb_version() < 15, reason="LLDB 14 knows no thread-local variables of a process behind a server")
@pytest.mark.parametrize("rank", [0, 2])
def test_by_lldb(held: Job, rank: int, tmp_path: Path) -> None:
    with listening(held.pid, "--rank", rank, "--port", 0) as (address, _):
        words = {"ADDRESS": address, "PROGRAM": str(tmp_path / "own"), "NAMES": repr(NAMES), "RANK": str(rank)}
        script = LLDB_SCRIPT
        for name, value in words.items():
            script = script.replace(name, value)
        answers = LldbSession(find_lldb(), tmp_path).run(script, load=False)
    check(answers["looks"], truth(held))


@pytest.mark.parametrize(
    "lists, numbers",
    [
        ([[1, 2, 3]], {1: 1, 2: 2, 3: 3}),
        ([[1, 2], [1, 3, 2]], {1: 1, 2: 2, 3: 3}),
        ([[1, 2, 3], [1, 3]], {1: 1}),
        ([[1, 2, 3], [1, 3], [1, 3, 4]], {1: 1, 4: 2, 3: 3}),
        ([[1, 2, 3], [1, 2]], {1: 1, 2: 2}),
        ([list(range(1, 400))], {number: number for number in range(1, MOST_MODULES + 1)}),
    ],
)
def test_modules_are_counted_as_gdb_counts_them(lists: list[list[int]], numbers: dict[int, int]) -> None:
    """A number that is free is given again; after a gap no number is certain."""
    modules = Modules()
    for each in lists:
        modules.learn(each)
    assert modules.numbers == numbers


@pytest.mark.parametrize("at", [0, 8, 255, 4090, 4096, 2 * 4096, 3 * 4096 + 77])
@pytest.mark.parametrize("size", [0, 1, 8, 10000])
def test_memory_that_is_made_up_ends_with_its_page(at: int, size: int) -> None:
    made_up = MadeUpMemory(ELSEWHERE + 3 * 4096, {ELSEWHERE + 3 * 4096: 0x7000}, {ELSEWHERE + 3 * 4096: 1}, bytes(40))
    found = made_up.read(ELSEWHERE + at, size)
    assert len(found) == (0 if at == 2 * 4096 else min(size, 4096 - at % 4096))
