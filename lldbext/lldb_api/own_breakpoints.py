"""Tells our breakpoints from the user's, and keeps LLDB from reporting locations added to ours.

Takes LLDB's target. LLDB prints "1 location added to breakpoint 2" whenever a module comes, and ranks' modules come
at every selection. It has to report users' own breakpoints, to front ends too: with any of these, it
reports all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lldb

NAME = "ranklens"  # of our breakpoints: `breakpoint list` leaves them out


def ours_of(target: Any) -> Iterator[Any]:
    """Yield the breakpoints of ours in a target."""
    return (lldb_breakpoint for lldb_breakpoint in target.breakpoint_iter() if lldb_breakpoint.MatchesName(NAME))


def users_of(target: Any) -> Iterator[Any]:
    """The user's breakpoints."""
    return (lldb_breakpoint for lldb_breakpoint in target.breakpoint_iter() if not lldb_breakpoint.MatchesName(NAME))


@contextmanager
def unheard(target: Any) -> Iterator[None]:
    """Report no change of breakpoints inside, if all are ours."""
    listener, places = target.GetDebugger().GetListener(), lldb.SBTarget.eBroadcastBitBreakpointChanged
    is_quiet = next(users_of(target), None) is None and listener.StopListeningForEvents(target.GetBroadcaster(), places)
    try:
        yield
    finally:
        if is_quiet:
            listener.StartListeningForEvents(target.GetBroadcaster(), places)
