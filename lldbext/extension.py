"""Switches the extension on: its commands, and the plugin that makes threads of ranks.

Takes a debugger; does nothing the second time.
"""

from __future__ import annotations

from typing import Any

from lldbext.breakpoints import lifecycle
from lldbext.commands import bind, command_overrides, other_callers
from lldbext.lldb_api.run_commands import version
from lldbext.selection.session import PLUGIN, SESSIONS, SETTING
from lldbext.stops import stop_hook

OLDEST = 14
COMPLETE = 16  # what an older one lacks is printed

PRELOAD = "target.preload-symbols"  # of ranks that are not looked at nothing need be read
NOT_ALL = "target.process.experimental.os-plugin-reports-all-threads"  # a step outlives its rank's wait

_on: set[int] = set()


def switch_on(debugger: Any) -> None:
    """Once per debugger; importing again changes nothing."""
    number = version()
    if 0 < number < OLDEST:
        print(f"ranklens needs LLDB {OLDEST} or newer; this is LLDB {number}")
        return
    if 0 < number < COMPLETE:
        print(f"ranklens: in LLDB {number} `p` may not come back in a rank that waits: use `rank print`")
    if debugger.GetID() in _on:
        return
    _on.add(debugger.GetID())
    bind.bind(debugger)
    if other_callers.can_override():
        command_overrides.install_overrides(debugger)
    else:
        print(f"ranklens: in LLDB {number} names follow `rank N`, not `thread select`")
    for setting in (NOT_ALL, PRELOAD):
        debugger.HandleCommand(f"settings set {setting} false")
    lifecycle.watch_events(debugger)
    stop_hook.watch_stops(debugger)
    process = debugger.GetSelectedTarget().GetProcess()
    if process.IsValid():
        SESSIONS.of(process).list_threads()
    else:
        debugger.HandleCommand(f'settings set {SETTING} "{PLUGIN}"')
