"""Finds the runtime's function for events in memory, where GDB has not read the runtime's library (`set sysroot`).

GDB then knows none of its functions, and may not hear that it was loaded. Takes the process's memory: before the
program begins, when the loader has loaded the library, its exported symbols tell where the function for events is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import gdb

from gdbext.gdb_api.inferior_breakpoint import InferiorBreakpoint
from gdbext.gdb_api.libraries.auto_solib_add_off import is_runtime, needs_runtime
from gdbext.gdb_api.run_commands import execute
from gdbext.gdb_api.target import FROM_STUB, LocalInferior, connection_kind, path_of, program_path
from pieglobalsfind.errors import RanklensError

ENTRY = r"(?m)^9\s+AT_ENTRY\s.*\b0x([0-9a-f]+)$"
OWN_ROOTS = ("", "/", FROM_STUB)  # settings of `sysroot` by which GDB finds a local process's own files


class HiddenRuntime:
    """Of one inferior. `on_event` takes a rank's event; `on_begin` is called before the program begins."""

    def __init__(self, on_event: Callable[[int, int], bool], on_begin: Callable[[], None]) -> None:
        self._on_event = on_event
        self._on_begin = on_begin
        self._breakpoints: list[InferiorBreakpoint] = []
        self._is_watched = False
        self._pid = 0

    def resumed(self) -> None:
        """The selected inferior is about to run."""
        inferior = gdb.selected_inferior()
        if inferior.pid == self._pid:
            return
        self._pid = inferior.pid
        if is_hidden(inferior) and needs_runtime(program_path()):
            entry = re.search(ENTRY, execute("info auxv"))
            if entry is not None:
                from gdbext.breakpoints.event_breakpoints import EntryBreakpoint

                self._breakpoints.append(EntryBreakpoint(int(entry[1], 16), self._on_begin))

    def watch(self, inferior: gdb.Inferior) -> None:
        """Break on ranks' events by what memory tells of the runtime, if GDB knows nothing of it."""
        if self._is_watched or not is_hidden(inferior):
            return
        from gdbext.breakpoints.event_breakpoints import EVENT_FUNCTION, InferiorEventBreakpoint
        from pieglobalsfind.decoders.registry.read_consistent import exported

        with suppress(RanklensError):
            target = LocalInferior(inferior)
            for address in exported(target, target.maps(), EVENT_FUNCTION):
                self._breakpoints.append(InferiorEventBreakpoint(address, self._on_event))
                self._is_watched = True
                return

    def forget(self) -> None:
        """The process is gone."""
        for own in self._breakpoints:
            if own.is_valid():
                own.delete()
        self._breakpoints.clear()
        self._is_watched, self._pid = False, 0


def is_hidden(inferior: gdb.Inferior) -> bool:
    """Whether GDB has read no runtime's library, and may read other files than the process's own."""
    if gdb.parameter("sysroot") in OWN_ROOTS or connection_kind(inferior) != "native":
        return False
    return not any(map(is_runtime, map(path_of, inferior.progspace.objfiles())))
