"""Where breakpoints stand, inferior by inferior.

Takes GDB's breakpoints; gives their locations, which GDB tells from version 13 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import gdb

IN_MEMORY = (gdb.BP_BREAKPOINT, gdb.BP_HARDWARE_BREAKPOINT)


def locations_in(breakpoint: gdb.Breakpoint, inferior: int) -> list[gdb.BreakpointLocation]:
    """Where a breakpoint stands in an inferior; nowhere while it is pending."""
    return [] if breakpoint.pending else [one for one in breakpoint.locations if inferior in one.thread_groups]


def has_several(breakpoint: gdb.Breakpoint) -> bool:
    return breakpoint.is_valid() and not breakpoint.pending and len(getattr(breakpoint, "locations", ())) > 1


def forget_hit() -> None:
    """Have GDB forget at which location of which breakpoint the selected thread has stopped.

    Once symbols have moved GDB 13 no longer finds the location among several, and warns of it at every command until
    the program goes on. It forgets at an `advance`, before it finds that there is no such place.
    """
    with suppress(gdb.error):
        gdb.execute("advance *$_ranklens_is_nowhere()", to_string=True)


@contextmanager
def taken_out() -> Iterator[None]:
    """No breakpoint is in the selected inferior's memory inside; in others, which may run meanwhile, they stay."""
    found = [one for one in gdb.breakpoints() if one.enabled and one.type in IN_MEMORY]
    number = gdb.selected_inferior().num
    if not any(one.pid and one.num != number for one in gdb.inferiors()):
        with disabled(found):
            yield
        return
    off = {one.number: {at.address for at in locations_in(one, number) if not at.enabled} for one in found}
    switch(found, number, off, False)
    try:
        yield
    finally:
        switch([one for one in found if one.is_valid()], number, off, True)


@contextmanager
def disabled(found: list[gdb.Breakpoint]) -> Iterator[None]:
    """The breakpoints as such are disabled inside."""
    for one in found:
        one.enabled = False
    try:
        yield
    finally:
        for one in found:
            if one.is_valid():
                one.enabled = True


def switch(found: list[gdb.Breakpoint], inferior: int, off: dict[int, set[int]], on: bool) -> None:
    """Enable or disable breakpoints in one inferior, but for the addresses where they are `off` anyway."""
    for one in found:
        for location in locations_in(one, inferior):
            if location.address not in off[one.number] and bool(location.enabled) != on:
                location.enabled = on
