"""What an editor does with ranks, by `ranklens-lldb-dap` and the configuration that we ship."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.debuggers import find_adapter
from tests.support.lldb.dap import Adapter
from tests.support.running import BIN, ROOT

OURS = BIN / "ranklens-lldb-dap"
CHOICE = "RANKLENS_LLDB_DAP"


@contextmanager
def attached(pid: int, folder: Path) -> Iterator[Adapter]:
    """An adapter that has attached to a job by the configuration for that."""
    configurations = json.loads((ROOT / "docs" / "vscode" / "launch.json").read_text())["configurations"]
    (text,) = (json.dumps(each) for each in configurations if each["name"].startswith("Attach to virtual ranks"))
    configuration = json.loads(text.replace("/path/to/ranklens", str(ROOT)).replace("${input:pid}", str(pid)))
    os.environ[CHOICE] = str(find_adapter())
    with Adapter(OURS, folder) as adapter:
        adapter.initialize()
        asked = adapter.send("attach", **configuration)
        adapter.event("initialized")
        adapter.ask("configurationDone")
        adapter.answer(asked)
        yield adapter


def stacks(adapter: Adapter) -> dict[int, list[dict[str, Any]]]:
    """The frames of each rank, as an editor asks for them: the innermost first, then the others."""
    found = {}
    for thread in adapter.ask("threads")["threads"]:
        name = re.match(r"rank (\d+)", thread["name"])
        if name is None:  # the kernel thread, on which no rank runs
            continue
        frames = []
        for first, count in ((0, 1), (1, 39)):
            body = adapter.ask("stackTrace", threadId=thread["id"], startFrame=first, levels=count)
            frames += body["stackFrames"]
        found[int(name[1])] = frames
    return found


def clicked(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Where Visual Studio Code goes: to the innermost frame that has a source and is not subtle.

    LLDB 23 names a source that it makes of a function's instructions, and has editors pass it over.
    """
    return next(one for one in frames if has_source(one) and one.get("presentationHint") != "subtle")


def has_source(frame: dict[str, Any]) -> bool:
    source = frame.get("source", {})
    return bool(source.get("path")) and source.get("presentationHint") != "deemphasize"
