"""What is done at each stop that LLDB shows: symbols follow the stopped thread, and no rank is missing in the list.

Takes LLDB's stop hook; never prints. LLDB loads the plugin for threads after it has made the list of an attached
process's threads, so the list is made again there.
"""

from __future__ import annotations

from typing import Any

from lldbext.quiet import warnings
from lldbext.selection import Selection
from lldbext.session import SESSIONS, Session
from pieglobalsfind.errors import NotVirtualizedError, TargetError


class StopHook:
    """LLDB makes one for each target."""

    def __init__(self, target: Any, extra: Any, internal_dict: Any) -> None:
        pass

    def handle_stop(self, context: Any, stream: Any) -> bool:
        """True: the process stays stopped."""
        with warnings("symbols may mean another rank than the stopped one"):
            follow(SESSIONS.of(context.GetProcess()))
        return True


def follow(session: Session) -> None:
    """Make LLDB's list of threads and its symbols those of this stop."""
    try:
        moment = session.moment()
    except (NotVirtualizedError, TargetError):
        return
    if not session.is_listed(moment):
        session.list_threads()
    selection = Selection(session)
    if selection.rank is not None:
        selection.refocus()


def watch_stops(debugger: Any) -> None:
    """Of the target that is there, or of those to come."""
    debugger.HandleCommand(f"target stop-hook add -P {__name__}.{StopHook.__name__}")
