"""Breakpoints of our own on what a runtime calls when a rank comes, leaves or ends, and what each has told.

Takes `rank_debug_event` (docs/abi.md), or functions of AMPI's or SimGrid's where there is no such function; calls a
handler with the call's arguments. They stop only where the handler says so, or where Ctrl-C came in the midst of it.
"""

from __future__ import annotations

from collections.abc import Callable

import gdb

from gdbext.gdb_api.breakpoint_locations import Own
from gdbext.gdb_api.inferior_breakpoint import InferiorBreakpoint
from gdbext.gdb_api.language import in_c
from gdbext.gdb_api.processor import processor
from gdbext.gdb_api.run_commands import uninterrupted, warnings
from gdbext.selection.debugger import ADDRESS

EVENT_FUNCTION = "rank_debug_event"


class EventBreakpoint(Own):
    """On the runtime's empty function."""

    def __init__(self, handler: Callable[[int, int], bool]) -> None:
        super().__init__(EVENT_FUNCTION, internal=True)
        self.silent = True
        self._handler = handler

    def stop(self) -> bool:
        """Note the event and decide whether GDB stops."""
        return as_a_whole(lambda: self._handler(*event_arguments()))


class InferiorEventBreakpoint(InferiorBreakpoint):
    """The same at an address of one inferior, where GDB does not know the function's name."""

    def __init__(self, address: int, handler: Callable[[int, int], bool]) -> None:
        super().__init__(address)
        self._handler = handler

    def stop(self) -> bool:
        """Note the event, in the inferior it was set for, and decide whether GDB stops."""
        is_home = self.home == gdb.selected_inferior().num
        return is_home and as_a_whole(lambda: self._handler(*event_arguments()))


class EntryBreakpoint(InferiorBreakpoint):
    """Where the program begins; never stops."""

    def __init__(self, address: int, act: Callable[[], None]) -> None:
        super().__init__(address)
        self._act = act

    def stop(self) -> bool:
        """Look for the runtime, once."""
        self.enabled = False
        return as_a_whole(self._is_done)

    def _is_done(self) -> bool:
        self._act()
        return False


class CallBreakpoint(InferiorBreakpoint):
    """On the first instruction of a function of a runtime's."""

    def __init__(self, function: str, address: int, handler: Callable[[str, tuple[int, int, int]], bool]) -> None:
        super().__init__(address)
        self.function = function
        self._handler = handler

    def stop(self) -> bool:
        """Note the call, in the inferior it was set for, and decide whether GDB stops."""
        return self.home == gdb.selected_inferior().num and as_a_whole(self._stops)

    def _stops(self) -> bool:
        frame = gdb.newest_frame()
        names = (*processor().argument_names[:2], processor().stack_pointer_name)
        first, second, pointer = (int(frame.read_register(name)) % ADDRESS for name in names)
        return self._handler(self.function, (first, second, pointer))


def event_arguments() -> tuple[int, int]:
    """The kind and the rank that the runtime's function is being called with."""
    frame = gdb.newest_frame()
    kind, rank = (int(frame.read_register(name)) & 0xFFFFFFFF for name in processor().argument_names[:2])
    return kind, rank - (1 << 32) if rank >> 31 else rank


def as_a_whole(handle: Callable[[], bool]) -> bool:
    """What has to be done at an event: Ctrl-C in the midst of it stops the target after it."""
    try:
        with uninterrupted(), warnings("breakpoints in ranks may be missing"):
            return handle()
    except KeyboardInterrupt:
        gdb.write("\nInterrupted.\n")
        return True
    return False


def is_mapped(inferior: gdb.Inferior, address: int) -> bool:
    """Whether there is memory: GDB knows symbols before it knows where the system has put their file."""
    try:
        return len(inferior.read_memory(address, 1)) == 1
    except gdb.error:
        return False


def function_address(name: str) -> int:
    """Where a function begins, 0 if there is none."""
    try:
        with in_c():
            return int(gdb.parse_and_eval(f"(unsigned long) &{name}"))
    except gdb.error:
        return 0


def function_exists(name: str) -> bool:
    """Return whether GDB finds a function of this name, for a breakpoint.

    To evaluate the name would take much longer, because GDB looks for a source file of that name, too. This is asked
    for each library that the program loads.
    """
    try:
        gdb.decode_line(name)
    except gdb.error:
        return False
    return True
