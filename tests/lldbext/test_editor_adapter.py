"""Ranks in an editor by `ranklens-lldb-dap`: clicks, hovers and watches mean the rank whose frame is selected.

The truth is the program's own: what it assigns by the rank, in its file and in another one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.debuggers import find_adapter, holds_up_commands
from tests.support.lldb.dap import Adapter
from tests.support.running import BIN, ROOT, Job, StartJob
from tests.support.sharing import Shared

SOURCES = ROOT / "tests" / "inspector" / "sources"
RANKS = 3
OURS = BIN / "ranklens-lldb-dap"
NO_MESSAGE = "ranklens-lldb-dap: this is not a message of the Debug Adapter Protocol: let an editor start this program\n"

pytestmark = pytest.mark.skipif(not holds_up_commands(), reason="from LLDB 16 on")


@pytest.fixture
def job(start_job: StartJob, rankrun: Path, rankcxx: Path, shared: Shared, tmp_path: Path) -> Job:
    files = [SOURCES / "fields.cpp", SOURCES / "fields_main.cpp"]
    program = shared.copied([rankcxx, "-g", "-O0", *files], tmp_path / "fields")
    running = start_job(rankrun, "-n", RANKS, program)
    running.wait_for("assigned")
    return running


@pytest.fixture
def adapter(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adapter]:
    """The shipped configuration for a running job, attached."""
    monkeypatch.setenv("RANKLENS_LLDB_DAP", str(find_adapter()))
    configurations = json.loads((ROOT / "docs" / "vscode" / "launch.json").read_text())["configurations"]
    (text,) = (json.dumps(each) for each in configurations if each["name"].startswith("Attach"))
    configuration = json.loads(text.replace("/path/to/ranklens", str(ROOT)).replace("${input:pid}", str(job.pid)))
    with Adapter(OURS, tmp_path) as one:
        one.ask("initialize", adapterID="lldb-dap", clientID="test", linesStartAt1=True, columnsStartAt1=True)
        asked = one.send("attach", **configuration)
        one.event("initialized")
        one.ask("configurationDone")
        one.answer(asked)
        yield one


def stacks(adapter: Adapter) -> dict[int, list[dict[str, Any]]]:
    """The frames of each rank, as an editor asks for them: the innermost first, then the others."""
    found = {}
    for thread in adapter.ask("threads")["threads"]:
        name = re.match(r"rank (\d+)", thread["name"])
        if name is None:  # the kernel thread, on which no rank runs
            continue
        frames = []
        for first, count in ((0, 1), (1, 19)):
            body = adapter.ask("stackTrace", threadId=thread["id"], startFrame=first, levels=count)
            frames += body["stackFrames"]
        found[int(name[1])] = frames
    return found


def clicked(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Where Visual Studio Code goes: to the innermost frame that has a source and is not subtle."""
    return next(one for one in frames if one.get("source", {}).get("path") and one.get("presentationHint") != "subtle")


def test_a_click_on_a_rank_shows_the_users_line(adapter: Adapter) -> None:
    line = next(
        n for n, text in enumerate((SOURCES / "fields_main.cpp").read_text().splitlines(), 1) if "MPI_Recv" in text
    )
    found = stacks(adapter)
    assert sorted(found) == list(range(RANKS))
    for frames in found.values():
        frame = clicked(frames)
        assert (frame["name"].partition("(")[0], frame["line"]) == ("main", line)
        assert frame["source"]["path"] == str(SOURCES / "fields_main.cpp")
        left = [one["name"].partition("(")[0] for one in frames if one.get("presentationHint") != "subtle"]
        assert left == ["MPI_Recv", "main"]
        assert len(frames) > len(left), "the runtime has frames of its own"


def test_hovers_and_watches_mean_the_frames_rank(adapter: Adapter) -> None:
    """Of other source files, too, in any order of ranks."""
    found = stacks(adapter)
    for rank in (0, 1, 2, 1, 0):
        frame = clicked(found[rank])["id"]
        adapter.ask("scopes", frameId=frame)
        values = {"geometry::depth": 100 + rank, "geometry::box.side": 200 + rank, "rank": rank, "elsewhere": 300 + rank}
        for context in ("hover", "watch"):
            for expression, value in values.items():
                answer = adapter.ask("evaluate", expression=expression, frameId=frame, context=context)
                assert answer["result"] == str(value), (rank, context, expression)
        box = adapter.ask("evaluate", expression="geometry::box", frameId=frame, context="watch")
        (side,) = adapter.ask("variables", variablesReference=box["variablesReference"])["variables"]
        assert (side["name"], side["value"]) == ("side", str(200 + rank))
    assert {rank: clicked(frames)["line"] for rank, frames in stacks(adapter).items()} == {
        rank: clicked(frames)["line"] for rank, frames in found.items()
    }


def test_the_debug_console_goes_on_meaning_the_clicked_rank(adapter: Adapter) -> None:
    found = stacks(adapter)
    for rank in (2, 0):
        frame = clicked(found[rank])["id"]
        adapter.ask("scopes", frameId=frame)
        adapter.ask("evaluate", expression="geometry::box.side", frameId=frame, context="watch")
        answer = adapter.ask("evaluate", expression="`p elsewhere", frameId=frame, context="repl")
        assert answer["result"].endswith(f"\n(int) {300 + rank}\n")
        answer = adapter.ask("evaluate", expression="`rank diff elsewhere", context="repl")["result"]
        assert all(f"{one}: {300 + one}" in answer for one in range(RANKS))


@pytest.mark.parametrize("context", ["hover", "watch"])
def test_an_error_is_shown_once(adapter: Adapter, context: str) -> None:
    frame = clicked(stacks(adapter)[1])["id"]
    answer = adapter.response(adapter.send("evaluate", expression="nonsense", frameId=frame, context=context))
    assert not answer["success"] and str(answer).count("use of undeclared identifier") == 1
    assert "undeclared" not in adapter.output and "ranklens-editor" not in adapter.output


@pytest.mark.parametrize("text", ["hello\n\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: 2\r\n\r\n[]"])
def test_what_is_no_message_is_refused_with_a_sentence(text: str) -> None:
    environment = {**os.environ, "RANKLENS_LLDB_DAP": str(find_adapter())}
    done = subprocess.run([str(OURS)], input=text, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", NO_MESSAGE)


def test_it_ends_with_its_input() -> None:
    environment = {**os.environ, "RANKLENS_LLDB_DAP": str(find_adapter())}
    done = subprocess.run([str(OURS)], input="", capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_adapter_that_is_missing_is_named() -> None:
    environment = {**os.environ, "RANKLENS_LLDB_DAP": "/nowhere/lldb-dap"}
    done = subprocess.run([str(OURS)], input="", capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("ranklens-lldb-dap: there is no program '/nowhere/lldb-dap'")
