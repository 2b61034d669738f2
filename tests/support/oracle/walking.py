"""The part of a random walk that runs inside GDB (sourced by it): commands one after another, and what GDB says.

Takes from the environment which commands, and where to write the answers. Never judges them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import gdb

OUTERMOST = ("main", "paths", "MAIN__")
LEAVING = ("finish ", "up ", "until ")  # of main: a rank's has callers, and `until PLACE` would go on to the end


def watched() -> list[gdb.Breakpoint]:
    return [
        gdb_breakpoint
        for gdb_breakpoint in gdb.breakpoints()
        if gdb_breakpoint.visible and gdb_breakpoint.type not in (gdb.BP_BREAKPOINT, gdb.BP_CATCHPOINT)
    ]


def tell(command: str) -> str:
    if command == "unwatch":
        for gdb_breakpoint in watched():
            gdb_breakpoint.delete()
        return ""
    try:
        said = gdb.execute(command, to_string=True)
        return "" if command == "continue" else said  # GDB itself tells of a watchpoint elsewhere
    except gdb.error as error:
        return f"error: {error}\n"


def allowed(command: str, several: bool) -> str:
    """With several inferiors GDB itself forgets at `until PLACE` which frame was selected."""
    is_outermost = gdb.selected_frame().name() in OUTERMOST
    if command == "continue" and not watched():  # it would not come back
        return "frame"
    forgets = several and command.startswith("until ") and gdb.selected_frame().level() > 0
    return "frame" if forgets or (is_outermost and (command + " ").startswith(LEAVING)) else command


def walk() -> None:
    plan = json.loads(Path(os.environ["RANKLENS_WALK"]).read_text())
    answers = [[one, tell(allowed(one, plan["several"])) + tell("frame")] for one in plan["commands"]]
    Path(plan["answers"]).write_text(json.dumps(answers))


walk()
