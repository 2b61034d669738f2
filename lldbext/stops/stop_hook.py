"""What is done at each stop that LLDB shows: symbols follow the stopped thread, and no rank is missing in the list.

Takes LLDB's stop hook; never prints. LLDB loads the plugin for threads after it has made the list of an attached
process's threads, so the list is made again there.
"""

from __future__ import annotations

from typing import Any

import lldb

from lldbext.breakpoints import lifecycle
from lldbext.lldb_api.own_breakpoints import ours_of
from lldbext.lldb_api.run_commands import warnings
from lldbext.selection.selection import Selection
from lldbext.selection.session import SESSIONS, Session
from lldbext.threads.kernel_stop_reasons import stops_any_thread
from lldbext.threads.thread_ids import rank_of_tid
from pieglobalsfind.errors import NotVirtualizedError, TargetError

REASONS = (
    lldb.eStopReasonBreakpoint,
    lldb.eStopReasonWatchpoint,
    lldb.eStopReasonSignal,
    lldb.eStopReasonException,
    lldb.eStopReasonPlanComplete,
)


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
    lifecycle.end_steps(session)
    pass_over_events(session)
    session.meet_kernel_threads()
    try:
        moment = session.moment()
    except (NotVirtualizedError, TargetError):
        return
    if not session.is_listed(moment) and not any(would_be_forgotten(session, thread) for thread in session.process):
        session.list_threads()
    selection = Selection(session)
    if selection.rank is not None:
        selection.refocus()


def pass_over_events(session: Session) -> None:
    """Where the runtime reported an event as a thread stopped for the user, LLDB might show the one that reported it.

    LLDB chooses after its hooks have run, and keeps the selected thread if that has a reason to be stopped.
    """
    selected = session.process.GetSelectedThread()
    if has_stopped(selected) and not is_event(session, selected):
        return
    events = {thread.GetThreadID(): is_event(session, thread) for thread in session.process if has_stopped(thread)}
    others = [tid for tid, event in events.items() if not event]
    if others and any(events.values()):
        session.process.SetSelectedThreadByID(others[0])


def would_be_forgotten(session: Session, thread: Any) -> bool:
    """Whether LLDB, listing threads again, would no longer know why a rank's stopped: the one below does not."""
    if not has_stopped(thread) or rank_of_tid(int(thread.GetThreadID())) is None:
        return False
    return not stops_any_thread(session.target, thread.GetFrameAtIndex(0).GetPC())


def has_stopped(thread: Any) -> bool:
    """For a reason that a user would want to see."""
    return thread.IsValid() and thread.GetStopReason() in REASONS


def is_event(session: Session, thread: Any) -> bool:
    """Whether a thread stopped at our own breakpoint and no other."""
    if thread.GetStopReason() != lldb.eStopReasonBreakpoint:
        return False
    numbers = {own.GetID() for own in ours_of(session.target)}
    hit = {thread.GetStopReasonDataAtIndex(index) for index in range(0, thread.GetStopReasonDataCount(), 2)}
    return bool(hit) and hit <= numbers  # of one that was deleted as it was hit LLDB tells nothing


def watch_stops(debugger: Any) -> None:
    """Of the target that is there, or of those to come."""
    debugger.HandleCommand(f"target stop-hook add -P {__name__}.{StopHook.__name__}")
