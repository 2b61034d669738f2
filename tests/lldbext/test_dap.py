"""Ranks in an editor: lldb-dap with the extension, asked over its pipes as Visual Studio Code asks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.debuggers import find_adapter, holds_up_commands
from tests.support.gdb.places import RANKS, SOURCES, Places
from tests.support.lldb.dap import Adapter
from tests.support.lldb.editor import CHOICE, OURS
from tests.support.lldb.session import EXTENSION
from tests.support.running import ROOT


@pytest.fixture(params=["lldb-dap", "ranklens-lldb-dap"])
def adapter(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adapter]:
    monkeypatch.setenv(CHOICE, str(find_adapter()))
    with Adapter(find_adapter() if request.param == "lldb-dap" else OURS, tmp_path) as one:
        one.initialize()
        yield one


def begin(adapter: Adapter, name: str, **variables: object) -> int:
    """Send what Visual Studio Code sends for one of the configurations that we ship, with its variables' values."""
    configurations = json.loads((ROOT / "docs" / "vscode" / "launch.json").read_text())["configurations"]
    (text,) = (json.dumps(each) for each in configurations if each["name"].startswith(name))
    for variable, value in {"/path/to/ranklens": ROOT, **variables, "${workspaceFolder}": ROOT}.items():
        text = text.replace(variable, str(value))
    found = json.loads(text)
    assert "${" not in str(found) and found["initCommands"] == [f"command script import {EXTENSION}"]
    return adapter.send(found["request"], **found)


def attached(adapter: Adapter, pid: int) -> dict[str, dict[str, Any]]:
    """Attach and stop; the threads by the rank that their name tells."""
    asked = begin(adapter, "Attach to virtual ranks", **{"${input:pid}": pid})
    adapter.event("initialized")
    adapter.ask("configurationDone")
    adapter.answer(asked)
    return threads_of(adapter)


def threads_of(adapter: Adapter) -> dict[str, dict[str, Any]]:
    found = {}
    for one in adapter.ask("threads")["threads"]:
        name = re.search(r"rank \d+", one["name"])
        found[name.group() if name else one["name"]] = one
    return found


def variables(adapter: Adapter, frame: int) -> dict[str, dict[str, str]]:
    """Each scope's variables: name -> value."""
    found = {}
    for scope in adapter.ask("scopes", frameId=frame)["scopes"]:
        answer = adapter.ask("variables", variablesReference=scope["variablesReference"])
        found[scope["name"]] = {one["name"]: one["value"] for one in answer["variables"]}
    return found


def test_every_rank_has_stack_scopes_and_variables(adapter: Adapter, places: Places) -> None:
    threads = attached(adapter, places.pid)
    assert sorted(threads) == [f"rank {rank}" for rank in range(RANKS)], adapter.output
    assert "rank 1: blocked in MPI_Recv from 2, tag 6" in threads["rank 1"]["name"]
    for rank in range(RANKS):
        frames = adapter.ask("stackTrace", threadId=threads[f"rank {rank}"]["id"])["stackFrames"]
        names = [frame["name"] for frame in frames]
        users = [name for name in names if name in ("spin", "wait_for", "stay", "main")]
        assert users == ["spin" if rank == RANKS - 1 else "wait_for", "stay", "main"], names
        main = next(frame for frame in frames if frame["name"] == "main")
        assert main["source"]["path"] == str(SOURCES / "places.c")
        found = variables(adapter, main["id"])
        assert found["Locals"]["rank"] == str(rank)
        shown = found["Globals"]["shared_name"], found["Globals"]["file_static"]
        assert shown == (str(10 + rank), str(20 + 2 * rank)), found["Globals"]
        watched = adapter.ask("evaluate", expression="shared_name + 1", frameId=main["id"], context="watch")
        assert watched["result"] == str(11 + rank)


def test_breakpoints_and_continue(adapter: Adapter, program: Path) -> None:
    asked = begin(adapter, "Launch", **{"${workspaceFolder}/solver": f'{program}", "end'})
    adapter.event("initialized")
    line = next(n for n, text in enumerate((SOURCES / "places.c").read_text().splitlines(), 1) if "int local =" in text)
    adapter.ask("setBreakpoints", source={"path": str(SOURCES / "places.c")}, breakpoints=[{"line": line}])
    adapter.ask("configurationDone")
    adapter.answer(asked)
    adapter.ask("threads")  # as editors do: newer lldb-daps answer it with the threads that the process began with
    ranks = []
    for _ in range(RANKS):
        stopped = adapter.event("stopped")
        assert stopped["reason"] == "breakpoint", stopped
        frame = adapter.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]
        assert (frame["name"], frame["line"]) == ("work", line)
        rank = int(variables(adapter, frame["id"])["Locals"]["rank"])
        assert threads_of(adapter)[f"rank {rank}"]["id"] == stopped["threadId"]
        ranks.append(rank)
        adapter.ask("continue", threadId=stopped["threadId"])
    assert sorted(ranks) == list(range(RANKS))
    assert adapter.event("exited")["exitCode"] == 0


def test_a_core_file(adapter: Adapter, core: Path) -> None:
    asked = begin(adapter, "Open", **{"${input:core}": core})
    adapter.event("initialized")
    adapter.ask("configurationDone")
    adapter.answer(asked)
    threads = threads_of(adapter)
    assert sorted(threads) == [f"rank {rank}" for rank in range(RANKS)]
    frames = adapter.ask("stackTrace", threadId=threads["rank 0"]["id"])["stackFrames"]
    assert [frame["name"] for frame in frames if frame["name"] in ("wait_for", "main")] == ["wait_for", "main"]


def test_commands_work_in_the_debug_console(adapter: Adapter, places: Places) -> None:
    attached(adapter, places.pid)
    answer = adapter.ask("evaluate", expression="`rank diff shared_name", context="repl")["result"]
    assert f"{RANKS - 1}: {10 + RANKS - 1}" in answer


@pytest.mark.skipif(
    not holds_up_commands(), reason="this LLDB calls nothing before its own commands: names follow `rank N`"
)
def test_the_debug_console_means_the_rank_of_the_selected_frame(adapter: Adapter, places: Places) -> None:
    """In frames of the MPI library too, whose source file has no variable of the program."""
    threads = attached(adapter, places.pid)
    for rank in [*range(RANKS), 1, 0]:
        frames = adapter.ask("stackTrace", threadId=threads[f"rank {rank}"]["id"])["stackFrames"]
        adapter.ask("scopes", frameId=frames[0]["id"])  # what an editor asks when a frame is clicked at
        answer = adapter.ask("evaluate", expression="`p shared_name", frameId=frames[0]["id"], context="repl")
        assert answer["result"].endswith(f"(int) {10 + rank}\n"), answer
