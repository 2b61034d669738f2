"""Ranks in an editor by `ranklens-lldb-dap`: clicks, hovers and watches mean the rank whose frame is selected.

The truth is the program's own: what it assigns by the rank, in its file and in another one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debuggers import find_adapter, holds_up_commands
from tests.support.lldb.dap import Adapter
from tests.support.lldb.editor import CHOICE, OURS, attached, clicked, stacks
from tests.support.running import ROOT, Job, StartJob
from tests.support.sharing import Shared

SOURCES = ROOT / "tests" / "inspector" / "sources"
RANKS = 3
NO_MESSAGE = "this is not a message of the Debug Adapter Protocol: let an editor start this program"

pytestmark = pytest.mark.skipif(not holds_up_commands(), reason="from LLDB 19 on")


@pytest.fixture
def job(start_job: StartJob, rankrun: Path, rankcxx: Path, shared: Shared, tmp_path: Path) -> Job:
    files = [SOURCES / "fields.cpp", SOURCES / "fields_main.cpp"]
    program = shared.copied([rankcxx, "-g", "-O0", *files], tmp_path / "fields")
    running = start_job(rankrun, "-n", RANKS, program)
    running.wait_for("assigned")
    return running


@pytest.fixture
def adapter(job: Job, tmp_path: Path) -> Iterator[Adapter]:
    with attached(job.pid, tmp_path) as one:
        yield one


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
        values = {
            "geometry::depth": 100 + rank,
            "geometry::box.side": 200 + rank,
            "rank": rank,
            "elsewhere": 300 + rank,
        }
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
        *_, value = answer["result"].splitlines()  # older LLDBs print the command before it
        assert value == f"(int) {300 + rank}"
        answer = adapter.ask("evaluate", expression="`rank diff elsewhere", context="repl")["result"]
        assert all(f"{one}: {300 + one}" in answer for one in range(RANKS))


@pytest.mark.parametrize("context", ["hover", "watch"])
def test_an_error_is_shown_once(adapter: Adapter, context: str) -> None:
    frame = clicked(stacks(adapter)[1])["id"]
    answer = adapter.response(adapter.send("evaluate", expression="nonsense", frameId=frame, context=context))
    assert not answer["success"] and str(answer).count("use of undeclared identifier") == 1
    assert "undeclared" not in adapter.output and "ranklens-editor" not in adapter.output


def answered(text: str, adapter: str = "") -> tuple[int, str, str]:
    """What it does with an input that is not a session: exit status, output and errors."""
    environment = {**os.environ, CHOICE: adapter or str(find_adapter())}
    done = subprocess.run(
        [str(OURS)], input=text, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("text", ["hello\n\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: 2\r\n\r\n[]"])
def test_what_is_no_message_is_refused_with_a_sentence(text: str) -> None:
    assert answered(text) == (2, "", f"ranklens-lldb-dap: {NO_MESSAGE}\n")


def test_it_ends_with_its_input() -> None:
    assert answered("") == (0, "", "")


def test_an_adapter_that_is_missing_is_named() -> None:
    status, _, error = answered("", "/nowhere/lldb-dap")
    assert status == 2
    assert error.startswith("ranklens-lldb-dap: program '/nowhere/lldb-dap' does not exist")
