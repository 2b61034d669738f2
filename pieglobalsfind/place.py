"""Where a rank has its own instance of a variable, by the rank's placements.

Takes a rank, an object and a variable of the object's debug information; gives an address, or why there is none. It
reads no memory.
"""

from __future__ import annotations

from typing import Union

from pieglobalsfind.dwarf_types import Variable
from pieglobalsfind.model import Absent, Object, Rank, Rebase, Redirect, TlsBlock


def place(rank: Rank, found: Object, variable: Variable) -> Union[int, Absent]:
    """Where the rank's instance of a variable lies: the first placement that covers it."""
    if variable.tls_offset is not None:
        return thread_local_place(rank, found, variable.tls_offset)
    address = (variable.address or 0) + found.load_bias
    for one in rank.placements:
        if isinstance(one, Redirect) and one.original <= address < one.original + max(one.size, 1):
            return one.storage + address - one.original
        if isinstance(one, Rebase) and one.object == found.index and one.original <= address < one.original + one.size:
            return one.copy + address - one.original
    return Absent("the rank has no copy of it")


def thread_local_place(rank: Rank, found: Object, offset: int) -> Union[int, Absent]:
    """Variant II of the TLS layout (ELF Handling For Thread-Local Storage, 3.4.6)."""
    for one in rank.placements:
        if isinstance(one, TlsBlock) and one.object in (None, found.index):
            if not one.is_thread_pointer:
                return one.address + offset
            if found.tls_offset:
                return one.address - found.tls_offset + offset
    return Absent("it is thread-local, and the rank has no such block of its own")
