"""Libraries that the program loads later, where GDB no longer hears of them.

GDB has a breakpoint of its own in the dynamic linker. From version 17 on it loses that as it forgets the linker's
symbols, though it has them again at once (libraries.py). Takes which files GDB shall not read; has it read all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Optional

import gdb

from gdbext.gdb_api.locations import Own
from gdbext.gdb_api.run_gdb import execute, uninterrupted, warnings

IS_LOST = r"(?m)^-\d+ +shlib events .*<PENDING>"
UNREAD = r"(?m)^0x[0-9a-f]+ +0x[0-9a-f]+ +(?:\d+ +)*No +(?:\(\*\) +)?(/.*)$"
LINKER_TELLS = "_dl_debug_state"  # which the dynamic linker calls whenever its list has changed (link.h)


class LinkerBreakpoint(Own):
    """Where the dynamic linker tells debuggers that it has loaded something; never stops."""

    def __init__(self, address: int, act: Callable[[], None]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self._act = act

    def stop(self) -> bool:
        with uninterrupted(), warnings("symbols of a library are missing"):
            self._act()
        return False


class LateLibraries:
    """Those of one inferior."""

    def __init__(self) -> None:
        self._breakpoint: Optional[LinkerBreakpoint] = None
        self._spared: frozenset[str] = frozenset()

    def watch(self, spared: frozenset[str]) -> None:
        """After GDB has forgotten libraries: hear of new ones in its place if need be, but leave `spared` alone."""
        self._spared = spared
        if self._breakpoint is not None and self._breakpoint.is_valid():
            return
        if re.search(IS_LOST, execute("maint info breakpoints")):
            try:
                address = int(gdb.parse_and_eval(f"(unsigned long) &{LINKER_TELLS}"))
            except gdb.error:  # the linker has no such symbol
                return
            self._breakpoint = LinkerBreakpoint(address, self._read)

    def _read(self) -> None:
        for path in unread():
            if path not in self._spared:
                execute("sharedlibrary " + re.sub(r"[^\w/-]", ".", path) + "$")

    def forget(self) -> None:
        """The process is gone."""
        if self._breakpoint is not None and self._breakpoint.is_valid():
            self._breakpoint.delete()
        self._breakpoint = None


def unread() -> Iterator[str]:
    """The libraries that the process has, and GDB no symbols of."""
    yield from re.findall(UNREAD, execute("info sharedlibrary"))
