"""Lists LLDB's commands that may look at ranks, and the commands that users have added.

Takes a command interpreter. LLDB lists the names, as for the Tab key; it does not say which of them have subcommands,
so that stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import lldb

FAMILIES = frozenset(
    (
        *("breakpoint", "breakpoint add", "breakpoint command", "breakpoint name", "breakpoint override"),
        *("command", "command script", "diagnostics"),
        *("frame", "frame recognizer", "language", "language cplusplus", "memory", "memory tag"),
        *("process", "process trace", "register", "scripting", "scripting extension", "source", "source cache"),
        *("target", "target dump", "target frame-provider", "target hook"),
        *("target modules", "target modules dump", "target modules search-paths"),
        *("target stop-hook", "target symbols", "thread", "thread plan", "thread trace", "thread trace dump"),
        *("thread trace export", "watchpoint", "watchpoint command", "watchpoint set"),
    )
)
BLIND = frozenset(  # these see no rank, nor do their subcommands
    (
        *("apropos", "help", "log", "platform", "plugin", "protocol-server", "quit", "session", "settings"),
        *("statistics", "trace", "version"),
    )
)


USERS = "Current user-defined commands:\n"  # what stands in `help` before them; for the Tab key LLDB leaves them out
NAME = re.compile(r"^\s+(\S+)\s+-- ", re.MULTILINE)


def seeing(interpreter: Any, family: str = "") -> Iterator[str]:
    """Every command that may look at ranks by its whole name, as in `target modules lookup`."""
    before = f"{family} " if family else ""
    for word in completions(interpreter, before):
        name = before + word
        if name in FAMILIES:
            yield from seeing(interpreter, name)
        elif name not in BLIND:
            yield name


def of_users(debugger: Any) -> set[str]:
    """The names of commands that scripts have added.

    The command's context is a target without its process: of a process LLDB would list the threads for it, while it may
    be asking for these threads.
    """
    result = lldb.SBCommandReturnObject()
    context = lldb.SBExecutionContext(debugger.GetDummyTarget())
    debugger.GetCommandInterpreter().HandleCommand("help", context, result, False)
    return set(NAME.findall((result.GetOutput() or "").partition(USERS)[2]))


def completions(interpreter: Any, line: str) -> list[str]:
    """What may follow; the first that LLDB gives is what all of them begin with."""
    names = lldb.SBStringList()
    interpreter.HandleCompletion(line, len(line), 0, -1, names)
    return [names.GetStringAtIndex(index) for index in range(1, names.GetSize())]
