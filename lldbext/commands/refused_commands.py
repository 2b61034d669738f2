"""LLDB's commands that make a thread go on, refused where that is a suspended rank: only the runtime can make it go on.

Takes a debugger, and a command that LLDB is about to carry out. The thread of a suspended rank is none of the kernel's:
LLDB would let the process run, and the step would never end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lldbext.lldb_api.target import CORE_PLUGINS
from lldbext.selection.debugger import LldbDebugger
from lldbext.selection.selection import Selection
from pieglobalsfind.debugger.wording import needs_running
from pieglobalsfind.errors import NotVirtualizedError, TargetError

GO_ON = (
    *(f"thread step-{way}" for way in ("in", "inst", "inst-over", "out", "over", "scripted")),
    *(f"thread {way}" for way in ("until", "jump", "return")),
)


def refuses(debugger: Any, command: str, words: Sequence[str]) -> bool:
    """Whether a command has been refused, with the reason; its words are those that the user typed."""
    with suppress(NotVirtualizedError, TargetError):
        session = LldbDebugger(debugger).session()
        selection = Selection(session)
        thread = meant(session.process, words)
        rank = selection.rank_of(thread)
        if rank is None or selection.is_kernel_thread(thread) or session.process.GetPluginName() in CORE_PLUGINS:
            return False
        sentence = needs_running(command, session.moment().rank(rank), "rank break")
        debugger.GetErrorFile().Write(f"error: {sentence}\n".encode())
        debugger.GetErrorFile().Flush()
        return True
    return False


def meant(process: Any, words: Sequence[str]) -> Any:
    """The thread that a command names by its number, as `thread step-over 3`, or the selected one."""
    named = process.GetThreadByIndexID(int(words[-1])) if words and words[-1].isdigit() else None
    return named if named is not None and named.IsValid() else process.GetSelectedThread()
