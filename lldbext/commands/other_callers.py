"""Tells whether users' scripts, commands or an editor may ask LLDB about any rank without our knowing beforehand.

Takes LLDB as it is at the moment. LLDB reads a module's whole table of symbols as soon as it has the module, some 10 ms
for 8,000 symbols: a job of 64 ranks would take longer to show than to attach to. While users type our commands alone,
and those of LLDB's that command_overrides.py overrides, only the ranks that these are about get modules.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import lldb

from lldbext.lldb_api import commands_that_see_ranks
from lldbext.lldb_api.own_breakpoints import users_of

COMMAND = re.compile(r"lldb(?:-[\d.]+)?")
OUR_COMMANDS = {"rank", "pieglobalsfind", "ranklens-editor"}
OURS = __name__.partition(".")[0]


def are_there(target: Any) -> bool:
    """Whether LLDB may be asked about any rank without our being told before."""
    if ask_by_functions():
        return True
    added = commands_that_see_ranks.of_users(target.GetDebugger()) - OUR_COMMANDS
    return bool(added) or any(True for _ in users_of(target)) or another_script_runs()


def ask_by_functions() -> bool:
    """As an editor's adapter does, not by commands; or LLDB does not say which command it runs."""
    return not can_override() or not COMMAND.fullmatch(Path("/proc/self/exe").readlink().name)


def can_override() -> bool:
    """Whether this LLDB calls back before its own commands: 19 does, 18 does not."""
    return hasattr(lldb.SBCommandInterpreter, "SetCommandOverrideCallback")


def another_script_runs() -> bool:
    """Whether Python code that is not ours has called LLDB, in any thread."""
    return any(outermost(frame).f_globals.get("__name__", "").partition(".")[0] != OURS for frame in python_frames())


def python_frames() -> list[FrameType]:
    """The innermost frame of each thread that is in Python code."""
    return list(sys._current_frames().values())


def outermost(frame: FrameType) -> FrameType:
    """Return the outermost Python frame."""
    while frame.f_back is not None:
        frame = frame.f_back
    return frame
