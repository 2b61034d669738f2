"""Users' breakpoints that may not stand where they are: they are disabled, and a sentence says why.

Takes a breakpoint and where it lies; writes to GDB's terminal.
"""

from __future__ import annotations

import gdb

from gdbext.breakpoints.followed import at_expression, is_in_data
from gdbext.gdb_api.locations import locations_of
from pieglobalsfind.session import shared_memory_ranks
from pieglobalsfind.session.process_view import ProcessView


def give_up(user: gdb.Breakpoint) -> None:
    """After Ctrl-C, where some ranks have a user's breakpoint and others would miss it."""
    if user.enabled:
        user.enabled = False  # which takes it out of all ranks
        gdb.write(
            f"[Breakpoint {user.number} is disabled, interrupted before all ranks had it: `enable {user.number}`]\n"
        )


def spare_data(moment: ProcessView, user: gdb.Breakpoint) -> None:
    """Disable what would be written into variables, where natively GDB would find no function of that name.

    A user who writes `hbreak *ADDRESS` means the address.
    """
    if at_expression(user):
        return
    locations = locations_of(user) if user.enabled else ()
    wrong = [location for location in locations if location.enabled and is_in_data(moment, location.address)]
    if wrong and len(wrong) == len(locations):
        user.enabled = False
        place = f"{wrong[0].address:#x} is the address of a variable, not of code"
        gdb.write(f"[Breakpoint {user.number} is disabled, {place}]\n")
        return
    for location in wrong:
        location.enabled = False


def spare_task(moment: ProcessView, user: gdb.Breakpoint) -> None:
    """Disable what would kill a process that GDB is not attached to."""
    locations = locations_of(user) if user.enabled else ()
    why = next(filter(None, (shared_memory_ranks.danger(moment, location.address) for location in locations)), None)
    if why is not None:
        user.enabled = False
        gdb.write(f"[Breakpoint {user.number} is disabled, {why}]\n")
