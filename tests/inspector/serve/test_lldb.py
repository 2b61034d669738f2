"""Stock LLDB and lldb-dap, without the extension, through the server: what a program printed of its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lldbext.test_dap import variables
from tests.support.debuggers import find_dap, find_lldb
from tests.support.gdb.places import RANKS, SOURCES, Places
from tests.support.lldb.dap import Adapter
from tests.support.lldb.session import Session
from tests.support.rsp import BASE, is_stopped, listening
from tests.support.waiting import wait_until

NAMES = ("shared_name", "file_static", "constant", "pair")
PATIENT = "settings set plugin.process.gdb-remote.packet-timeout 60"
READ = """
ask("PATIENT")
for command in COMMANDS:
    ask(command)
target = debugger.GetSelectedTarget()
process = connected(target, ADDRESS) if ADDRESS else target.GetProcess()
thread = process.GetThreadAtIndex(0)
tell("name", thread.GetName())
tell("functions", functions(thread))
main = [frame for frame in thread if frame.GetFunctionName() == "main"][0]
tell("local", main.FindVariable("rank").GetValueAsSigned())
for name, expression in (("shared_name", "shared_name"), ("file_static", "file_static"), ("constant", "constant"),
                         ("pair", "pair.second")):
    value, error = main.EvaluateExpression(expression), lldb.SBError()
    number = value.GetValueAsSigned(error)  # 0 if it fails
    tell(name, number if error.Success() else error.GetCString())
ask("process detach")
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(find_lldb(), tmp_path)


def script(*commands: str, address: str = "") -> str:
    """`address`: where to connect to after the commands, "" if one of them has done so."""
    return READ.replace("COMMANDS", repr(commands)).replace("PATIENT", PATIENT).replace("ADDRESS", repr(address))


def check(told: object, places: Places, rank: int) -> None:
    state = f"rank {rank}: blocked in MPI_Recv from {rank + 1}, tag 6"
    assert told["name"].startswith(f"rank {RANKS - 1}: running" if rank == RANKS - 1 else state)  # type: ignore[index]
    assert told["local"] == rank and "main" in told["functions"]  # type: ignore[index]
    found = {name: told[name] for name in NAMES}  # type: ignore[index]
    assert found == {name: places.owned[rank, name].value for name in NAMES}


@pytest.mark.parametrize("rank", [1, RANKS - 1])
def test_one_rank(rank: int, places: Places, program: Path, session: Session) -> None:
    """A suspended rank, and the one that runs."""
    with listening(places.pid, "--rank", rank, "--port", 0) as (address, _):
        answers = session.run(script(f"target create {program}", address=address), load=False)
        check(answers, places, rank)
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")


def test_ranks_of_the_platform(places: Places, program: Path, session: Session) -> None:
    """`platform process list` names every rank, and each can be attached to."""
    connect = ("platform select remote-gdb-server", "platform connect connect://ADDRESS")
    with listening(places.pid, "--port", 0) as (address, _):
        before = [one.replace("ADDRESS", address) for one in connect]
        text = script(*before, f"target create {program}", f"process attach -p {BASE + 2}")
        answers = session.run(text + "tell('list', ask('platform process list'))\n", load=False)
        check(answers, places, 2)
        for rank in range(RANKS):
            assert str(BASE + rank) in answers["list"], answers["list"]
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")


def test_an_editor_by_lldb_dap(places: Places, program: Path, tmp_path: Path) -> None:
    with (
        listening(places.pid, "--rank", 1, "--port", 0) as (address, _),
        Adapter(find_dap(), tmp_path) as adapter,
    ):
        adapter.initialize()
        waiting = [f"script lldb.debugger.SetAsync({answer})" for answer in (False, True)]  # docs/vscode.md says why
        commands = {"initCommands": [PATIENT], "attachCommands": [waiting[0], f"gdb-remote {address}", waiting[1]]}
        asked = adapter.send("attach", program=str(program), stopOnEntry=True, **commands)
        adapter.event("initialized")
        adapter.ask("configurationDone")
        adapter.answer(asked)
        (thread,) = adapter.ask("threads")["threads"]
        assert "rank 1: blocked in MPI_Recv from 2, tag 6" in thread["name"]
        frames = adapter.ask("stackTrace", threadId=thread["id"])["stackFrames"]
        main = next(frame for frame in frames if frame["name"] == "main")
        assert main["source"]["path"] == str(SOURCES / "places.c")
        found = variables(adapter, main["id"])
        assert found["Locals"]["rank"] == "1"
        for name in ("shared_name", "file_static"):
            assert found["Globals"][name] == str(places.owned[1, name].value)
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")
