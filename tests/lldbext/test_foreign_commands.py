"""Modules of ranks are made when they are needed: what LLDB is asked first finds them, whichever way it is asked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.debuggers import holds_up_commands
from tests.support.gdb.places import RANKS, Places
from tests.support.host.script import told_by
from tests.support.lldb.session import EXTENSION, Session
from tests.support.running import ROOT

LOAD = f"command script import {EXTENSION}"
LINKS = "platform shell ls -d ranklens-lldb-*/rank*"  # a folder for each rank that has modules
ALL_ARE_MADE = "this LLDB calls nothing before its own commands: all ranks have modules from the start"
USERS_COMMAND = """
import lldb

def count(debugger, text, context, result, names):
    process = debugger.GetSelectedTarget().GetProcess()
    result.AppendMessage("%d frames" % sum(frame.GetFunctionName() == "main" for one in process for frame in one))

def __lldb_init_module(debugger, names):
    debugger.HandleCommand(f"command script add -o -f {__name__}.count count")
"""


def typed(session: Session, arguments: Sequence[object], commands: Sequence[str], **more: str) -> str:
    """What LLDB says to commands; no script asks, as `Session.run` has one do."""
    words = [*map(str, arguments), *(word for command in commands for word in ("-o", command))]
    environment = {"RANKLENS_TRACEBACK": "1", "TMPDIR": str(session.folder), **more}
    return told_by([str(session.lldb), "-x", "-b", *words], session.folder, environment).output


def linked(output: str) -> list[set[int]]:
    """Of which ranks there were modules, at each listing."""
    return [{int(rank) for rank in re.findall(r"/rank(\d+)", part)} for part in output.split(f"(lldb) {LINKS}")[1:]]


@pytest.mark.skipif(not holds_up_commands(), reason=ALL_ARE_MADE)
def test_only_what_is_asked_for_is_made(session: Session, places: Places) -> None:
    """The rank that runs has modules, and the one that the command is about; `bt all` is LLDB's own."""
    said = typed(session, ("-p", places.pid), (LOAD, "rank bt 1", LINKS, "rank bt 0-1", LINKS, "bt all", LINKS))
    assert linked(said) == [{1, RANKS - 1}, {0, 1, RANKS - 1}, set(range(RANKS))], said
    ours, own = said.split("(lldb) rank bt 0-1")[0], said.split("(lldb) bt all")[1]
    assert re.search(r"^#\d+ .* in main \(argc=1, ", ours, re.MULTILINE), ours
    assert own.count("`main(argc=1") == RANKS, own


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("breakpoint set -n wait_for", f": {RANKS} locations."),
        (
            "script print(sum(frame.GetFunctionName() == 'main' for one in lldb.process for frame in one), 'frames')",
            f"{RANKS} frames",
        ),
        ("rank apply all thread backtrace --count 1", "frame #0"),
    ],
)
def test_whatever_is_asked_first_finds_all(command: str, expected: str, session: Session, places: Places) -> None:
    said = typed(session, ("-p", places.pid), (LOAD, LINKS, command, LINKS))
    before, after = linked(said)
    assert before == ({RANKS - 1} if holds_up_commands() else after) and after == set(range(RANKS)), said
    assert expected in said, said


def test_users_commands_find_all(session: Session, places: Places) -> None:
    users = session.folder / "users.py"
    users.write_text(USERS_COMMAND)
    said = typed(session, ("-p", places.pid), (f"command script import {users}", LOAD, "rank list", "count"))
    assert f"{RANKS} frames" in said, said


def test_the_commands_that_are_held_up_are_all(session: Session) -> None:
    """What has subcommands is never called itself: each such command of LLDB's is known as one."""
    script = """
from lldbext.lldb_api import commands_that_see_ranks
names = list(commands_that_see_ranks.seeing(debugger.GetCommandInterpreter()))
tell("names", names)
tell("families", [name for name in names if "ubcommands are supported" in ask(f"help {name}")])
tell("checked", "ubcommands are supported" in ask("help thread"))
"""
    answers = session.run(script)
    harmless = ("type", "language objc", "language renderscript", "command container", "reproducer")
    assert answers["checked"] and [one for one in answers["families"] if not one.startswith(harmless)] == []
    assert {"thread list", "thread backtrace", "target modules dump symtab", "script", "gui"} <= {*answers["names"]}


@pytest.mark.parametrize("forbidden", ["", "1"])
def test_bytecode_is_kept_unless_forbidden(forbidden: str, session: Session, tmp_path: Path) -> None:
    for package in ("lldbext", "pieglobalsfind"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    said = typed(
        session,
        (),
        (
            f"command script import {tmp_path / 'lldbext'}",
            "script import sys; print(sys.dont_write_bytecode)",
        ),
        PYTHONDONTWRITEBYTECODE=forbidden,
        PYTHONPYCACHEPREFIX="",
    )
    kept = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert said.rstrip().splitlines()[-1] in ("1", "True"), said
    assert ({"extension", "model"} <= kept) is not bool(forbidden), kept
