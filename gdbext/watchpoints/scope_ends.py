"""Stops when the function of a watched local variable returns, for watchpoints by address, where GDB would not notice.

Takes a watchpoint on a place, and where the function returns to. GDB stops there itself for a watchpoint by name.
"""

from __future__ import annotations

import gdb

from gdbext.gdb_api.inferior_breakpoint import InferiorBreakpoint
from gdbext.gdb_api.processor import processor

# GDB's words.
LEFT = "\nWatchpoint {} deleted because the program has left the block in\nwhich its expression is valid.\n"


class ScopeEnd(InferiorBreakpoint):
    """Behind the call of a function, for the one call alone."""

    def __init__(self, watchpoint: gdb.Breakpoint, returns_to: tuple[int, int]) -> None:
        address, self._stack_pointer = returns_to
        super().__init__(address)
        self.watchpoint = watchpoint
        self.is_reached = False

    def stop(self) -> bool:
        """Stop where the watched variable's function has returned."""
        if not self.watchpoint.is_valid() or self.home != gdb.selected_inferior().num:
            return False
        self.is_reached = int(gdb.newest_frame().read_register(processor().stack_pointer_name)) == self._stack_pointer
        return self.is_reached

    def text(self) -> str:
        """Return the sentence that says why the watchpoint ends."""
        return LEFT.format(self.watchpoint.number)
