"""Keeps GDB's reports of made, changed and deleted breakpoints until it is safe to change breakpoints.

Takes breakpoints from GDB's events `breakpoint_created`, `breakpoint_modified` and `breakpoint_deleted`; gives them
once, later. GDB sends these amid its walks over breakpoints and their locations (`enable once`, a hit, symbols that
are read again), and crashes if a handler changes breakpoints there.
"""

from __future__ import annotations

import gdb


class QueuedChanges:
    """Changed breakpoints in the order in which GDB reported them first, and the numbers of deleted ones."""

    def __init__(self) -> None:
        self._changed: dict[int, gdb.Breakpoint] = {}
        self._deleted: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._changed or self._deleted)

    def add(self, breakpoint: gdb.Breakpoint) -> None:
        """It was made or changed."""
        self._changed.setdefault(breakpoint.number, breakpoint)

    def delete(self, number: int) -> None:
        """Note that a breakpoint was deleted."""
        self._changed.pop(number, None)
        self._deleted.add(number)

    @property
    def changed(self) -> list[gdb.Breakpoint]:
        """Return the changed ones that are still there."""
        return [gdb_breakpoint for gdb_breakpoint in self._changed.values() if gdb_breakpoint.is_valid()]

    def take(self) -> tuple[list[gdb.Breakpoint], set[int]]:
        """Those that are still there, and what is deleted; nothing is pending afterwards."""
        changed, deleted = self.changed, self._deleted
        self._changed, self._deleted = {}, set()
        return changed, deleted
