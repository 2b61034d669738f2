"""Has GDB read the libraries that the program loads later, except the originals of ranks' copies.

As it hears of a new library GDB reads every one that it has no symbols of, the originals too, and breakpoints stand in
these until they are forgotten again. So it reads none by itself while the program runs. It hears of libraries by a
breakpoint of its own in the dynamic linker. From version 17 on it loses that as it forgets the linker's symbols, though
it has them again at once (forget.py). Where the linker has probes for debuggers, as Ubuntu's, GDB 15 keeps
breakpoints at these, and no longer looks for libraries there. One of ours there has it read what is new.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from typing import Optional

import gdb

from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.inferior_breakpoint import InferiorBreakpoint
from gdbext.gdb_api.language import in_c
from gdbext.gdb_api.momentary_breakpoints import Resumed
from gdbext.gdb_api.run_commands import execute, uninterrupted, warnings
from gdbext.gdb_api.target import connection_kind, open_inferior, path_of

SETTING = "auto-solib-add"
IS_LOST = r"(?m)^-\d+ +shlib events (?!.*_dl_debug_state>)"
AT_LINKER = r"(?m)^-\d+ +shlib events .* (0x[0-9a-f]+) <(?:__GI_)?_dl_debug_state>"
HEARS = r"(?m)^-\d+ +shlib events .* 0x0*{:x}\b"
R_STATE = "*(int *) ((char *) &_r_debug + 24)"
LINKER_TELLS = "_dl_debug_state"  # which the dynamic linker calls whenever its list has changed (link.h)


class LinkerBreakpoint(InferiorBreakpoint):
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
        self._reads = False  # in GDB's place

    def watch(self, spared: frozenset[str], runs: bool) -> None:
        """After GDB has forgotten libraries: have new ones read, but leave `spared` alone.

        `runs`: the program goes on, and no user looks at settings. A program that drives GDB has no prompt at which
        originals are forgotten that a command has read.
        """
        self._spared = spared
        if self._breakpoint is None or not self._breakpoint.is_valid():
            if Resumed.is_gone() or not (may_read() or re.search(IS_LOST, execute("maint info breakpoints"))):
                return
            address = where_linker_tells()
            if address is None:
                return
            self._breakpoint = LinkerBreakpoint(address, self._read)
        if runs or speaks_mi():
            self.resumed()

    def resumed(self) -> None:
        """The program runs: GDB reads no library by itself."""
        is_watched = self._breakpoint is not None and self._breakpoint.is_valid()
        if is_watched and not self._reads and may_read():
            self._reads = True
            execute(f"set {SETTING} off")

    def stopped(self) -> None:
        """The user may look at the setting; to a program that drives GDB each change of it is reported."""
        if self._reads and not speaks_mi():
            self.give_back()

    def give_back(self) -> None:
        """GDB reads libraries again."""
        if self._reads:
            self._reads = False
            execute(f"set {SETTING} on")

    def _read(self) -> None:
        if not self._reads and not gdb.parameter(SETTING):  # the user wants none to be read
            return
        paths = self._unread()
        self._read_each(paths)
        if paths and self._unread() and is_whole() and not self._gdb_hears_there():
            renew_list()
            self._read_each(paths)

    def _unread(self) -> list[str]:
        return [path for path in unread() if path not in self._spared]

    def _gdb_hears_there(self) -> bool:
        """Whether GDB has a breakpoint of its own where ours is: it has brought its list up to date then.

        To make the list anew deletes GDB's breakpoint, amid the stop at it, and GDB crashes.
        """
        address = self._breakpoint.address if self._breakpoint is not None else 0
        return re.search(HEARS.format(address), execute("maint info breakpoints")) is not None

    @staticmethod
    def _read_each(paths: list[str]) -> None:
        for path in paths:
            execute("sharedlibrary " + pattern_of(path))

    def forget(self) -> None:
        """The process is gone."""
        if self._breakpoint is not None and self._breakpoint.is_valid():
            self._breakpoint.delete()
        self._breakpoint = None
        self.give_back()


def may_read() -> bool:
    """Whether libraries can be read in GDB's place: the setting is one for all inferiors, and may be the user's."""
    inferiors = gdb.inferiors()
    return len(inferiors) == 1 and connection_kind(inferiors[0]) == "native" and bool(gdb.parameter(SETTING))


def where_linker_tells() -> Optional[int]:
    """The address of LINKER_TELLS, None if the dynamic linker has no such symbol.

    GDB's own breakpoint there says it. For an expression GDB reads debug information of the linker: a fifth of the time
    that the extension takes to start.
    """
    own = re.search(AT_LINKER, execute("maint info breakpoints")) if len(gdb.inferiors()) == 1 else None
    if own is not None:
        return int(own[1], 16)
    try:
        with in_c():
            return int(gdb.parse_and_eval(f"(unsigned long) &{LINKER_TELLS}"))
    except gdb.error:
        return None


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
    """The files, but for the program's, whose code the process has mapped, be it once more, and GDB no symbols of.

    GDB's own list is not asked: with libraries in other namespaces (dlmopen(3)) GDB 17 and 18 end there by an internal
    error, because they have missed how these came.
    """
    read = Counter(os.path.realpath(path_of(objfile)) for objfile in gdb.objfiles())  # as the kernel names files
    space = gdb.current_progspace()
    program = os.path.realpath(path_of(space)) if space is not None else ""
    code = [mapping for mapping in open_inferior().maps() if mapping.executable and mapping.path.startswith("/")]
    mapped = Counter(mapping.path for mapping in code)
    return list(
        dict.fromkeys(
            mapping.path
            for mapping in code
            if mapping.path != program
            and (mapped[mapping.path] > read[mapping.path] or not gdb.solib_name(mapping.start))
        )
    )
