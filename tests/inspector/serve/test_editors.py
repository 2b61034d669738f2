"""Editors' adapters through the server, without any extension: what a click, a hover and a watch show of a rank.

The adapters are real, and get what `docs/vscode/launch.json` and `docs/vscode.md` have: lldb-dap, GDB's own one, and
GDB's machine interface with the commands that cppdbg sends for its configuration.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.debuggers import find_dap, gdb_version
from tests.support.inspector.turns import EXPECTED, TURNS, Turns, results
from tests.support.lldb.dap import Adapter
from tests.support.rsp import BASE, is_stopped, listening
from tests.support.running import ROOT, StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

SOURCES = ROOT / "tests" / "inspector" / "sources"
RANKS = 3
RANK = 2
OF_GDB = ("-nx", "-q", "-iex", "set debuginfod enabled off", "-iex", "set auto-load python-scripts off")
OF_ITS_FILE = {"geometry::depth": 100 + RANK}
VALUES = {**OF_ITS_FILE, "geometry::box.side": 200 + RANK}


@pytest.fixture
def program(tmp_path: Path, shared: Shared, rankcxx: Path) -> Path:
    files = [SOURCES / "fields.cpp", SOURCES / "fields_main.cpp"]
    return shared.copied([rankcxx, "-g", "-O0", *files], tmp_path / "fields")


@pytest.fixture
def port(start_job: StartJob, rankrun: Path, program: Path) -> Iterator[str]:
    """Where one rank of a job is served; the job goes on in the end."""
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("assigned")
    with listening(job.pid, "--rank", RANK, "--port", 0) as (address, _):
        yield address.rpartition(":")[2]
    wait_until(lambda: not is_stopped(job.pid), "the job was left stopped")


def configuration(kind: str, program: Path, port: str, name: str = "one rank") -> dict[str, Any]:
    """What the editor has of our file for a rank, with what the user answers."""
    text = (ROOT / "docs" / "vscode" / "launch.json").read_text()
    text = text.replace("${workspaceFolder}/solver", str(program)).replace("${input:port}", port)
    text = text.replace("${input:everyPort}", port).replace("${input:rank}", str(BASE + RANK))
    (found,) = (one for one in json.loads(text)["configurations"] if name in one["name"] and one["type"] == kind)
    assert isinstance(found, dict)
    return found


NO_QUALIFIED = "<'::' (coloncolon)> is not allowed"  # what LLDB 23 says of all such names where it is hovered over one


def begin(adapter: Adapter, **arguments: object) -> None:
    adapter.ask(
        "initialize", adapterID="test", clientID="test", pathFormat="path", linesStartAt1=True, columnsStartAt1=True
    )
    asked = adapter.send("attach", **arguments)
    adapter.event("initialized")
    adapter.ask("configurationDone")
    adapter.answer(asked)


def has_source(frame: dict[str, Any]) -> bool:
    """Whether an editor goes to the frame: newer lldb-daps have disassembly where there is no line, and mark it."""
    source = frame.get("source", {})
    return bool(source.get("path")) and source.get("presentationHint") != "deemphasize"


def check_rank(adapter: Adapter, kind_of_error: str, hovered: dict[str, int]) -> None:
    """The only thread is the rank; a click shows the user's line; values are the rank's; an error comes once."""
    (thread,) = adapter.ask("threads")["threads"]
    assert f"rank {RANK}" in thread["name"]
    frames = adapter.ask("stackTrace", threadId=thread["id"], startFrame=0, levels=0)["stackFrames"]
    clicked = next(frame for frame in frames if has_source(frame))
    assert (clicked["name"].partition("(")[0], clicked["source"]["path"]) == ("main", str(SOURCES / "fields_main.cpp"))
    for context, values in (("hover", hovered), ("watch", VALUES)):
        for expression, value in values.items():
            asked = adapter.send("evaluate", expression=expression, frameId=clicked["id"], context=context)
            answer = adapter.response(asked)
            if context == "hover" and NO_QUALIFIED in str(answer):
                continue
            assert answer["success"], (context, expression, answer)
            shown = answer["body"]["result"]
            if context == "hover":
                shown = shown.rpartition(" = ")[2]  # lldb-dap 18: (int) geometry::depth = 102
            assert shown == str(value), (context, expression, answer)
    wrong = adapter.response(adapter.send("evaluate", expression="nonsense", frameId=clicked["id"], context="watch"))
    assert not wrong["success"] and str(wrong).count(kind_of_error) == 1, wrong
    assert kind_of_error not in adapter.output


def test_lldb_dap(program: Path, port: str, tmp_path: Path) -> None:
    with Adapter(find_dap(), tmp_path) as adapter:
        begin(adapter, **configuration("lldb-dap", program, port))
        check_rank(adapter, "use of undeclared identifier", OF_ITS_FILE)  # LLDB knows no others when it hovers


def test_lldb_dap_attaches_by_number(start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path) -> None:
    """Two editors' sessions at one server: each has its own rank."""
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("assigned")
    with listening(job.pid, "--port", 0) as (address, _), Adapter(find_dap(), tmp_path) as adapter:
        found = configuration("lldb-dap", program, address.rpartition(":")[2], "by its number")
        begin(adapter, **found)
        check_rank(adapter, "use of undeclared identifier", OF_ITS_FILE)
        other = {
            **found,
            "attachCommands": [line.replace(str(BASE + RANK), str(BASE)) for line in found["attachCommands"]],
        }
        (tmp_path / "other").mkdir()
        with Adapter(find_dap(), tmp_path / "other") as second:
            begin(second, **other)
            (thread,) = second.ask("threads")["threads"]
            assert "rank 0" in thread["name"]
    wait_until(lambda: not is_stopped(job.pid), "the job was left stopped")


@pytest.mark.skipif(gdb_version() < (14, 0), reason="GDB speaks the protocol from 14 on")
def test_gdbs_own_adapter(gdb: Path, program: Path, port: str, tmp_path: Path) -> None:
    words = [*OF_GDB, "-iex", "set sysroot /", "-iex", "set remotetimeout 60", "-i", "dap"]
    with Adapter(gdb, tmp_path, *words) as adapter:
        begin(adapter, program=str(program), target=f"127.0.0.1:{port}")
        check_rank(adapter, "No symbol", VALUES)


BEFORE = (  # of the configuration's own commands
    "-gdb-set mi-async on",
    '-interpreter-exec console "set pagination off"',
    '-interpreter-exec console "set debuginfod enabled off"',
    "-gdb-set auto-solib-add on",
)


def check_steps(adapter: Adapter, turns: Turns) -> None:
    """A breakpoint in the editor stops the rank alone, and a step over an MPI call ends in it."""
    first = SOURCES.joinpath("turns.c").read_text().splitlines().index("    done += turn + number;") + 1
    adapter.ask("setBreakpoints", source={"path": str(SOURCES / "turns.c")}, breakpoints=[{"line": first}])
    (thread,) = adapter.ask("threads")["threads"]
    adapter.events = [event for event in adapter.events if event["event"] != "stopped"]
    turns.go.touch()
    for turn in range(TURNS):
        for command, line in (("continue", first), ("next", first + 1), ("next", first + 2)):
            adapter.ask(command, threadId=thread["id"])
            adapter.event("stopped")
            frame = adapter.ask("stackTrace", threadId=thread["id"], startFrame=0, levels=1)["stackFrames"][0]
            assert (frame["line"], frame["name"].partition("(")[0]) == (line, "work")
            values = [
                adapter.ask("evaluate", expression=name, frameId=frame["id"], context="watch")["result"]
                for name in ("number", "turn")
            ]
            assert values == [str(RANK), str(turn)]
    adapter.ask("disconnect", terminateDebuggee=False)


def test_lldb_dap_controls(turns: Turns, tmp_path: Path) -> None:
    job = turns.virtual("pie")
    pid = turns.process_of(job, RANK)
    with listening(pid, "--control", "--rank", RANK, "--port", 0) as (address, _):
        with Adapter(find_dap(), tmp_path) as adapter:
            begin(adapter, **configuration("lldb-dap", tmp_path / "turns", address.rpartition(":")[2]))
            check_steps(adapter, turns)
        assert results(job) == EXPECTED


@pytest.mark.skipif(gdb_version() < (14, 0), reason="GDB speaks the protocol from 14 on")
def test_gdbs_own_adapter_controls(gdb: Path, turns: Turns, tmp_path: Path) -> None:
    job = turns.virtual("pie")
    pid = turns.process_of(job, RANK)
    words = [*OF_GDB, "-iex", "set sysroot /", "-iex", "set remotetimeout 60", "-i", "dap"]
    with listening(pid, "--control", "--rank", RANK, "--port", 0) as (address, _):
        with Adapter(gdb, tmp_path, *words) as adapter:
            begin(adapter, program=str(tmp_path / "turns"), target=address)
            check_steps(adapter, turns)
        assert results(job) == EXPECTED


LOOK = (
    "-thread-info",
    "-stack-list-frames --thread 1 0 1000",
    *(f'-var-create --thread 1 --frame LEVEL - * "{expression}"' for expression in VALUES),
    '-var-create --thread 1 --frame LEVEL - * "nonsense"',
    "-target-detach",
    "-gdb-exit",
)


def answers(gdb: Path, first: list[str], level: str) -> str:
    typed = "".join(f"{command.replace('LEVEL', level)}\n" for command in [*BEFORE, *first, *LOOK])
    words = [str(gdb), *OF_GDB, "--interpreter=mi"]
    return subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120, check=True).stdout


def test_as_cppdbg_speaks(gdb: Path, program: Path, port: str) -> None:
    """Its adapter is in no registry that we use: these are the commands by which its sources (MIEngine) carry out ours.

    With `customLaunchSetupCommands` it sends these alone, and names no program.
    """
    wanted = configuration("cppdbg", program, port)
    assert wanted["launchCompleteCommand"] == "None", "it lets the job run otherwise"
    first = [each["text"] for each in wanted["customLaunchSetupCommands"]]
    frames = re.findall(r'level="(\d+)",[^}]*?func="(\w+)"[^}]*?fullname="([^"]+)"', answers(gdb, first, "0"))
    assert frames[0][1:] == ("main", str(SOURCES / "fields_main.cpp")), "what a click shows"
    said = answers(gdb, first, frames[0][0])
    assert f'name="rank {RANK}"' in said
    assert re.findall(r'\^done,name="var\d+",numchild="0",value="(\d+)"', said) == [str(one) for one in VALUES.values()]
    assert said.count("^error") == 1, said
