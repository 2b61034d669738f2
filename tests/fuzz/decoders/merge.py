"""`inspector merge`: an input is the text of a file; what comes out names each rank at most once."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from pathlib import Path

from inspector.analysis.report_schema import NAME as REPORT
from inspector.commands import merge
from inspector.commands.stacks import SCHEMA as STACKS
from pieglobalsfind.errors import RanklensError
from tests.fuzz.scratch import ScratchFile

SCRATCH = ScratchFile()
CALL = {"function": "main", "file": "a.c", "line": 7, "library": ""}
STACKS_FILE = {
    "schema": STACKS,
    "target": "process 7",
    "job": "j",
    "taken": "2026",
    "how": "live",
    "rank_count": 8,
    "stacks": [{"ranks": "0-3,5", "calls": [CALL, {**CALL, "function": "work"}]}, {"ranks": "6", "calls": [CALL]}],
    "missing": [{"ranks": "4,7", "reason": "it runs"}],
}
REPORT_FILE = {
    "schema": REPORT,
    "job": "j",
    "taken": "2026",
    "rank_count": 4,
    "ranks": [{"rank": number, "state": "ready", "moves": 0} for number in range(4)],
    "payload": [{"rank": number, "stack": 10} for number in range(4)],
    "globals": [{"name": "x", "object": "/a", "differs": True, "groups": [{"ranks": "0-2", "value": "1"},
                {"ranks": "3", "value": "2"}]}],
}  # fmt: skip


def seeds() -> list[bytes]:
    """Sound files, and spans that are too long, empty or reversed."""
    sound = [json.dumps(one).encode() for one in (STACKS_FILE, REPORT_FILE)]
    spans = (b"0-16777215", b"3-0", b"", b"1,1", b"0-", b"-", b"99", b"0" * 5000, b"\\u0660-\\u0663")
    return [*sound, *(one.replace(b"0-3", span).replace(b"0-2", span) for one in sound for span in spans)]


def check(data: bytes) -> None:
    SCRATCH.write(data)
    for as_json in (True, False):
        printed = io.StringIO()
        try:
            content = merge.read(Path(SCRATCH.path))
            with contextlib.redirect_stdout(printed):
                merge.run(argparse.Namespace(files=[SCRATCH.path], json=as_json))
        except RanklensError:
            return
        assert isinstance(content, dict)
        if as_json and content.get("schema") == STACKS:
            check_stacks(json.loads(printed.getvalue()))


def ranks_of(text: str) -> list[int]:
    """The ranks of "0-3,5"."""
    spans = [part.partition("-") for part in text.split(",") if part]
    return [rank for first, _, last in spans for rank in range(int(first), int(last or first) + 1)]


def check_stacks(merged: dict[str, object]) -> None:
    named: list[int] = []
    for part in ("stacks", "missing"):
        rows = merged[part]
        assert isinstance(rows, list)
        for row in rows:
            named += ranks_of(row["ranks"])
    assert len(named) == len(set(named))
