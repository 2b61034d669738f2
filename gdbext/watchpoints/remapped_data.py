"""Watchpoints on data that all ranks write at one address, where SMPI maps one rank's at a time (privatization:mmap).

Takes a rank's own instance of a variable, and the address in common; stops where the instance has changed. The
processor tells of every access at the address, whosever data is mapped there at the moment. What is compared is the
rank's own memory, which is mapped for good at another place.
"""

from __future__ import annotations

import gdb

from gdbext.gdb_api.language import in_c
from gdbext.watchpoints.changes_during_symbol_switch import Changes
from gdbext.watchpoints.expression_by_address import ValuePlace


class RemappedWatchpoint(gdb.Breakpoint):
    """GDB's watchpoint at the address in common, silent: GDB would tell another rank's value as the old one."""

    def __init__(self, expression: str, rank: int, own: ValuePlace, shared_address: int, changes: Changes) -> None:
        self.expression_in_rank = expression
        self._process = gdb.selected_inferior().pid
        self._changes = changes
        with in_c():
            place = own.text.replace(f"{own.address:#x}", f"{shared_address:#x}")
            super().__init__(place, type=gdb.BP_WATCHPOINT, wp_class=gdb.WP_ACCESS)
        self.silent = True
        changes.begin(self.number, rank, own, None)

    def stop(self) -> bool:
        """Whether the rank's own memory has changed since GDB last said what is there."""
        if gdb.selected_inferior().pid != self._process:
            return False
        return self._changes.is_change(self, self.expression_in_rank)
