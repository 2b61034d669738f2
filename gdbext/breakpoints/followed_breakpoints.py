"""Tells which of the user's breakpoints need followers (follower_breakpoint.py): internal breakpoints in ranks' copies.

Takes GDB's breakpoints; changes none but where followers take over a place.
"""

from __future__ import annotations

import re
from typing import Any, Optional

import gdb

from gdbext.breakpoints.evaluate_condition import ranks_of
from gdbext.gdb_api.breakpoint_locations import IN_MEMORY, Own, locations_of
from gdbext.symbols.object_placement import has_copy, is_copying
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.session.process_view import ProcessView

RANK_IN_FOCUS = r"\$_rank\b"


def is_shared(moment: ProcessView, number: Optional[int]) -> bool:
    """Whether all ranks use one copy of an object, now and later; None is none of the program's."""
    if number is None or not moment.table.objects[number].privatized:
        return True
    if is_copying(moment):
        return False
    first = moment.table.ranks[0]
    return not has_copy(moment, number, first.rank) or runs_original(first, moment.table.objects[number])


def follows(breakpoint: Any) -> bool:
    """Whether it is a user's breakpoint on code, be it one that GDB does not show; not the end of one call."""
    if not breakpoint.is_valid() or breakpoint.type not in IN_MEMORY:
        return False
    return not isinstance(breakpoint, (Own, gdb.FinishBreakpoint))


def at_expression(user: gdb.Breakpoint) -> bool:
    """Whether a breakpoint stands at `*EXPRESSION`."""
    return (user.location or "").startswith("*")


def is_in_data(moment: ProcessView, address: int) -> bool:
    """Whether an address lies in an object's variables: GDB takes symbols of variables in views for functions."""
    owner = moment.translator.owner(address)
    segments = moment.table.objects[owner.object].segments if owner.object is not None else ()
    code = (segment for segment in segments if segment.executable)
    return bool(segments) and not any(
        segment.offset <= owner.offset < segment.offset + segment.memory_size for segment in code
    )


def catches_in_code(breakpoint: Any) -> bool:
    """Whether it is a user's `catch throw` or the like: in a library's code, unlike `catch syscall`.

    GDB 12 tells Python of none.
    """
    if not breakpoint.is_valid() or breakpoint.type != getattr(gdb, "BP_CATCHPOINT", None):
        return False
    return bool(breakpoint.pending) or any(location.address for location in locations_of(breakpoint))


def is_anything_in_code() -> bool:
    """Whether the user has breakpoints, dprintfs apart, for which symbols have to move in time while ranks are made."""
    return any(follows(gdb_breakpoint) or catches_in_code(gdb_breakpoint) for gdb_breakpoint in gdb.breakpoints())


def leave_to_followers(user: gdb.Breakpoint) -> None:
    """Where several inferiors have ranks, GDB can't tell in a condition whose `$_rank` is meant; followers can."""
    if names_rank_in_focus(user):
        for location in locations_of(user):
            if location.enabled:
                location.enabled = False


def names_rank_in_focus(user: gdb.Breakpoint) -> bool:
    """Return whether a breakpoint's condition names `$_rank` otherwise than to choose ranks."""
    return bool(user.condition and re.search(RANK_IN_FOCUS, user.condition) and ranks_of(user.condition)[1])
