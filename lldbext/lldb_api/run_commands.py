"""Runs LLDB's own commands without their output reaching the user, and turns errors into sentences.

Takes commands as text; gives their output. LLDB's users never see a traceback of ours, unless RANKLENS_TRACEBACK is set
in LLDB's environment.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lldb

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.shell.escape import escape

TRACEBACK = "RANKLENS_TRACEBACK"


class DebuggerError(RanklensError):
    """LLDB refused something, in LLDB's own words."""


def version() -> int:
    """LLDB's major version, 0 if it does not say."""
    match = re.search(r"version (\d+)", lldb.SBDebugger.GetVersionString())
    return int(match.group(1)) if match else 0


def execute(debugger: Any, command: str) -> str:
    """The output of a command; raises `DebuggerError`."""
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, selected_context(debugger), result, False)
    if not result.Succeeded():
        raise DebuggerError(bare(result.GetError()) or "LLDB refused without a reason")
    return result.GetOutput() or ""


def selected_context(debugger: Any) -> Any:
    """What is selected now, for a command: inside one LLDB takes that one's context for the context of all commands.

    Never of an invalid frame: LLDB 23 ends by SIGSEGV at a command with such a context.
    """
    target = debugger.GetSelectedTarget()
    process = target.GetProcess()
    thread = process.GetSelectedThread()
    selected = (thread.GetSelectedFrame(), thread, process, target)
    return lldb.SBExecutionContext(next((each for each in selected if each.IsValid()), debugger.GetDummyTarget()))


def bare(error: str) -> str:
    """An error without the word that LLDB puts before it, on one line."""
    return " ".join(error.strip().removeprefix("error:").split()).rstrip(".")


@contextmanager
def warnings(consequence: str) -> Iterator[None]:
    """For what LLDB calls by itself: errors inside become a warning, "CONSEQUENCE: why"."""
    try:
        yield
    except Exception as error:
        print(f"warning: {consequence}: {sentence_of(error)}", file=sys.stderr)


def sentence_of(error: Exception) -> str:
    """What the user reads; a defect of ours is called one, and how to see where."""
    if isinstance(error, RanklensError):
        return escape(str(error))
    if os.environ.get(TRACEBACK):
        traceback.print_exception(type(error), error, error.__traceback__)
    return (
        f"ranklens failed ({type(error).__name__}: {escape(str(error))}); LLDB itself is unharmed, "
        f"{TRACEBACK}=1 in its environment and the same again show where"
    )
