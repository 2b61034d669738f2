"""Waits until LLDB has shown what it shows by a thread of its own, such as the frame after `thread select`.

That thread walks stacks, and asks the list of modules meanwhile. If the list changes just then, each side has the lock
that the other one waits for, and LLDB 19 hangs. Takes a debugger; changes nothing, and waits for a bounded time.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import lldb

THREAD = "dbg.evt-handler"  # what LLDB calls it where names are short
MARK = 1
PATIENCE = 10.0  # seconds; longer than anything is printed
BETWEEN = 0.0002  # seconds
_marks: dict[int, Any] = {}  # by the debugger's number


def wait_for_printing(debugger: Any) -> None:
    """Come back once all that LLDB has taken in so far is shown: it shows one thing after another."""
    if not is_shown_by_another():
        return
    mark = _mark_of(debugger)
    mark.BroadcastEventByType(MARK)
    listener, event, deadline = debugger.GetListener(), lldb.SBEvent(), time.monotonic() + PATIENCE
    while listener.PeekAtNextEventForBroadcaster(mark, event) and time.monotonic() < deadline:
        time.sleep(BETWEEN)


def _mark_of(debugger: Any) -> Any:
    """What posts an event after those that wait to be shown; LLDB shows nothing of it."""
    mark = _marks.get(debugger.GetID())
    if mark is None:
        mark = _marks[debugger.GetID()] = lldb.SBBroadcaster("ranklens")
        debugger.GetListener().StartListeningForEvents(mark, MARK)
    return mark


def is_shown_by_another() -> bool:
    """Whether LLDB has a thread that shows things, and this is not it."""
    own = threading.get_native_id()
    threads = [int(path.name) for path in Path("/proc/self/task").iterdir() if _name(path) == THREAD]
    return bool(threads) and own not in threads


def _name(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:  # it has ended
        return ""
