"""Overrides of LLDB's own commands, which run before these: names mean the selected rank's variables first.

Takes a debugger; LLDB calls back before it carries out one of the commands named here. LLDB tells extensions nothing of
`thread select`, so that names would go on meaning the rank that was selected before. A name that is qualified by a
namespace is ambiguous to LLDB while it has modules of several ranks; such a command is run here, with one rank's alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import lldb

from lldbext.commands.refused_commands import GO_ON, refuses
from lldbext.lldb_api import commands_that_see_ranks
from lldbext.lldb_api.run_commands import warnings
from lldbext.lldb_api.wait_for_printing import wait_for_printing
from lldbext.selection.debugger import LldbDebugger
from lldbext.selection.selection import Selection
from lldbext.selection.session import SESSIONS, Session
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError
from pieglobalsfind.stacks.unwind import Activation

EXPRESSIONS = (
    *("expression", "dwim-print"),  # `p`, `print`, `po` and `call` are aliases of these
    *("memory read", "memory find", "memory write", "memory region", "disassemble"),
    *("watchpoint set expression", "watchpoint set variable"),
)
BY_NAME = (*EXPRESSIONS, "frame variable", "target variable", "target modules lookup")
# These change LLDB's modules, or what it is about to show, by running the process or by selecting.
AFTER_PRINTING = (
    *("process continue", "process detach", "thread continue", *GO_ON),
    *("thread select", "frame select"),
)
# AMPI's manual tells its users to `call pieglobalsfind($rip)`, which ends a job where no rank runs.
AMPIS_OWN = re.compile(r"\bpieglobalsfind\s*\(")
OWN_COMMAND = "ranklens: the command `pieglobalsfind ADDRESS` reports which rank owns an address, without a call"
QUALIFIED = re.compile(r"\w\s*::\s*~?[A-Za-z_]")


def install_overrides(debugger: Any) -> None:
    """Override every command that may look at ranks."""
    interpreter = debugger.GetCommandInterpreter()
    names = commands_that_see_ranks.seeing(interpreter)
    for command in dict.fromkeys((*names, *BY_NAME, *AFTER_PRINTING)):
        before = (
            override_by_name(debugger, command) if command in BY_NAME else override_after_printing(debugger, command)
        )
        interpreter.SetCommandOverrideCallback(command, before)


def override_after_printing(debugger: Any, command: str) -> Callable[..., bool]:
    """What LLDB calls before a command that takes no names; True: it has been refused."""

    def before(*words: str) -> bool:
        with warnings("what is shown may be of another moment"):
            if command in AFTER_PRINTING:
                wait_for_printing(debugger)
            let_all_be_known(debugger)
            return command in GO_ON and refuses(debugger, command, words)
        return False

    return before


def let_all_be_known(debugger: Any) -> None:
    """A command of LLDB's follows, which may look at any rank."""
    process = debugger.GetSelectedTarget().GetProcess()
    if not SESSIONS.has(process) or SESSIONS.of(process).knows_all:
        return
    session = SESSIONS.of(process)
    wait_for_printing(debugger)
    with kept_frame(session), suppress(NotVirtualizedError, TargetError):
        session.know_all()


def override_by_name(debugger: Any, command: str) -> Callable[..., bool]:
    """What LLDB calls, with the words of the command line; True: the command has been carried out."""

    def before(*words: str) -> bool:
        with warnings("names may mean another rank than the selected one"), suppress(NotVirtualizedError, TargetError):
            let_all_be_known(debugger)
            session = LldbDebugger(debugger).session()
            if session.modules.is_visiting:
                return False
            wait_for_printing(debugger)
            with kept_frame(session):
                follow(session)
            warn_of_lost_frame(session)
            if command in EXPRESSIONS and AMPIS_OWN.search(" ".join(words)):
                session.tell_once(OWN_COMMAND, f"pieglobalsfind {session.process.GetStopID()}")
            if command in EXPRESSIONS and QUALIFIED.search(" ".join(words)):
                return run_with_one_rank(debugger, session, line_of(words))
        return False

    return before


def line_of(words: Sequence[str]) -> str:
    """The command line that LLDB made words of; one that takes a line as it is comes as one word."""
    return words[0] if len(words) == 1 else " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """A word as LLDB reads it from a line."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if re.search(r"""[\s"'`\\]""", word) else word


def follow(session: Session) -> None:
    """Make names mean the selected rank's variables, if a rank is selected."""
    selection = Selection(session)
    if selection.rank is not None:
        selection.refocus()


def warn_of_lost_frame(session: Session) -> None:
    """Once per frame and stop: LLDB looks in the wrong place for the variables of a frame that it takes wrongly."""
    selection, selected = Selection(session), session.process.GetSelectedThread().GetSelectedFrame()
    if selection.rank is None:
        return
    frames: list[Any] = []
    with suppress(RanklensError):  # a rank without frames: LLDB says so
        frames = list(itertools.islice(selection.frames(selection.rank), selected.GetFrameID() + 1))
    if any(isinstance(frame, Activation) for frame in frames):
        text = "ranklens: LLDB misreads this frame, so the variables that it shows may be wrong; see `rank bt`"
        session.tell_once(text, f"lost {session.process.GetStopID()} {selected.GetCFA()}")


@contextmanager
def kept_frame(session: Session) -> Iterator[None]:
    """LLDB forgets which frame was selected when its modules change."""
    thread = session.process.GetSelectedThread()
    level = thread.GetSelectedFrame().GetFrameID()
    yield
    if thread.GetSelectedFrame().GetFrameID() != level:
        thread.SetSelectedFrame(level)


def run_with_one_rank(debugger: Any, session: Session, command: str) -> bool:
    """Carry out a command while LLDB has no modules but the selected rank's; False if there are no others anyway."""
    rank = Selection(session).rank
    if rank is None or session.modules.ranks <= {rank}:
        return False
    result = lldb.SBCommandReturnObject()
    with kept_frame(session):
        try:
            session.modules.visit(session.moment(), rank)
            debugger.GetCommandInterpreter().HandleCommand(command, result, False)
        finally:
            session.modules.settle()
    for file, text in ((debugger.GetOutputFile(), result.GetOutput()), (debugger.GetErrorFile(), result.GetError())):
        if text:
            file.Write(text.encode())
            file.Flush()
    return True
