"""Libraries that the program loads later, where GDB no longer hears of them.

GDB has a breakpoint of its own in the dynamic linker. From version 17 on it loses that as it forgets the linker's
symbols, though it has them again at once (libraries.py). Where the linker has probes for debuggers, as Ubuntu's, GDB 15
keeps breakpoints at these, and no longer looks for libraries there. Takes which files GDB shall not read; has it read
all others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Optional

import gdb

from gdbext.gdb_api.internal_breakpoint import Pinned
from gdbext.gdb_api.language import in_c
from gdbext.gdb_api.momentary_breakpoints import Resumed
from gdbext.gdb_api.run_gdb import execute, uninterrupted, warnings
from gdbext.gdb_api.target import open_inferior, path_of

IS_LOST = r"(?m)^-\d+ +shlib events (?!.*_dl_debug_state>)"
R_STATE = "*(int *) ((char *) &_r_debug + 24)"
LINKER_TELLS = "_dl_debug_state"  # which the dynamic linker calls whenever its list has changed (link.h)


class LinkerBreakpoint(Pinned):
    """Where the dynamic linker tells debuggers that it has loaded something; never stops."""

    def __init__(self, address: int, act: Callable[[], None]) -> None:
        super().__init__(address)
        self._act = act

    def stop(self) -> bool:
        """Look at libraries that were loaded, in the inferior it was set for; never stop."""
        if self.home == gdb.selected_inferior().num:
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
        if not Resumed.is_gone() and re.search(IS_LOST, execute("maint info breakpoints")):
            try:
                with in_c():
                    address = int(gdb.parse_and_eval(f"(unsigned long) &{LINKER_TELLS}"))
            except gdb.error:  # the linker has no such symbol
                return
            self._breakpoint = LinkerBreakpoint(address, self._read)

    def _read(self) -> None:
        paths = [path for path in unread() if path not in self._spared]
        self._read_each(paths)
        if not set(paths) <= set(map(path_of, gdb.objfiles())) and is_whole():
            renew_list()
            self._read_each(paths)

    @staticmethod
    def _read_each(paths: list[str]) -> None:
        for path in paths:
            execute("sharedlibrary " + pattern_of(path))

    def forget(self) -> None:
        """The process is gone."""
        if self._breakpoint is not None and self._breakpoint.is_valid():
            self._breakpoint.delete()
        self._breakpoint = None


def is_whole() -> bool:
    """Whether the dynamic linker's list is not just being changed: its `r_state` is RT_CONSISTENT (link.h)."""
    try:
        with in_c():
            return int(gdb.parse_and_eval(R_STATE)) == 0
    except gdb.error:  # the linker has no such symbol
        return False


def renew_list() -> None:
    """Have GDB ask the dynamic linker for all libraries.

    Where the linker has probes for debuggers GDB keeps a list, and brings it up to date as it passes one alone; setting
    the system root makes it anew, whatever it is set to. What GDB has read of libraries stays read.
    """
    execute(f"with auto-solib-add off -- set sysroot {gdb.parameter('sysroot') or ''}")


def pattern_of(path: str) -> str:
    """What GDB may call the file; the kernel has followed symbolic links, as libstdc++.so.6 to libstdc++.so.6.0.30."""
    name, library, _ = os.path.basename(path).partition(".so")
    return "/" + re.sub(r"[^\w-]", ".", name + library) + ("[^/]*$" if library else "$")


def unread() -> list[str]:
    """The files whose code the process has mapped, be it once more, and GDB no symbols of.

    GDB's own list is not asked: with libraries in other namespaces (dlmopen(3)) GDB 17 and 18 end there by an internal
    error, because they have missed how these came.
    """
    known = set(map(path_of, gdb.objfiles()))
    code = [mapping for mapping in open_inferior().maps() if mapping.executable and mapping.path.startswith("/")]
    return list(
        dict.fromkeys(
            mapping.path for mapping in code if mapping.path not in known or not gdb.solib_name(mapping.start)
        )
    )
