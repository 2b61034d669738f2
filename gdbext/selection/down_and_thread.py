"""Makes `down` stop at a suspended rank's innermost frame, and `thread N` select the rank that runs on that thread.

Takes GDB's hooks. `down` ends at the rank's innermost frame, as it does in a process; `thread N` means the rank that
runs on that thread, also if it is the thread that GDB has selected all along.
"""

from __future__ import annotations

from collections.abc import Callable

import gdb

from gdbext.gdb_api import hooks
from gdbext.gdb_api.run_commands import warnings
from gdbext.selection.debugger import GdbDebugger

HOOKS = {
    "hook-down": "maintenance ranklens-check-down",
    "hookpost-thread": "maintenance ranklens-follow-thread",
    "hookpost-restart": "maintenance ranklens-follow-restart",
}
POSING = 0  # the level of the thread's own frame


class CheckDown(gdb.Command):
    """Refuse to go down from a suspended rank's innermost frame."""

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__(HOOKS["hook-down"], gdb.COMMAND_MAINTENANCE)
        self._debugger = debugger

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Refuse to go below a suspended rank's innermost frame, as GDB does at its own."""
        if self._debugger.selection.is_suspended and gdb.selected_frame().level() <= POSING + 1:
            raise gdb.GdbError("Bottom (innermost) frame selected; you cannot go down.")


class FollowThread(gdb.Command):
    """After `thread N`, select the rank that runs there."""

    def __init__(self, debugger: GdbDebugger, show: Callable[[], None]) -> None:
        super().__init__(HOOKS["hookpost-thread"], gdb.COMMAND_MAINTENANCE)
        self._debugger, self._show = debugger, show

    def invoke(self, argument: str, from_tty: bool) -> None:
        """`thread` alone only tells, and leaves the frame where it is."""
        selection = self._debugger.selection
        with warnings("no rank is selected"):
            if selection.rank is None or not selection.is_suspended or gdb.selected_frame().level() != POSING:
                return
            if self._debugger.follow():
                self._show()


def bind(debugger: GdbDebugger, show: Callable[[], None], restarted: Callable[[], None]) -> None:
    """`show` tells which rank runs on the thread; `restarted` is called after `restart`, which is another process."""
    hooks.Called(HOOKS["hookpost-restart"], restarted)
    CheckDown(debugger)
    FollowThread(debugger, show)
    hooks.define(*({hook: command} for hook, command in HOOKS.items()))
