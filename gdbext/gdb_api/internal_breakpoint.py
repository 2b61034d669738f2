"""Internal breakpoints at addresses, each in the inferior in which it was made.

Takes an address; GDB itself would put it into every inferior of which it reads symbols.
"""

from __future__ import annotations

import gdb

from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.locations import Own, locations_of


class Pinned(Own):
    """An internal breakpoint at an address of the selected inferior; GDB itself does not tell users of it."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.home = gdb.selected_inferior().num
        super().__init__(f"*{address:#x}", type=gdb.BP_BREAKPOINT, internal=True)
        self.silent = not speaks_mi()
        self.stay()

    def stay(self) -> None:
        """Leave the inferiors into which GDB has put it by itself.

        Where there is one, GDB is not asked: inside a stop, GDB 12 would execute the user's commands (`UsersCommands`).
        """
        for one in locations_of(self) if len(gdb.inferiors()) > 1 else ():
            if one.enabled and self.home not in one.thread_groups:
                one.enabled = False
