"""Internal breakpoints at addresses, each in the inferior in which it was made.

Takes an address. GDB itself evaluates `break *ADDRESS` anew in every inferior of which it reads symbols, and puts a
breakpoint there as well: in a program that just starts there is no memory at that address, so that GDB can't run it.
"""

from __future__ import annotations

from functools import cache

import gdb

from gdbext.gdb_api.breakpoint_locations import Own
from gdbext.gdb_api.front_end import speaks_mi

OFFSET = "_ranklens_offset_in"


class InferiorBreakpoint(Own):
    """An internal breakpoint at an address of the selected inferior; GDB itself does not tell users of it.

    `bound`: GDB finds no such place in other inferiors. While there are none it need not ask, which takes it twice as
    long for each of many breakpoints whenever symbols move.
    """

    def __init__(self, address: int, bound: bool = True) -> None:
        self.address = address
        self.home = gdb.selected_inferior().num
        self.is_bound = bound
        super().__init__(
            place(address, self.home) if bound else f"*{address:#x}", type=gdb.BP_BREAKPOINT, internal=True
        )
        self.silent = not speaks_mi()


def place(address: int, inferior: int) -> str:
    """An address as GDB's expression that has a value in one inferior's memory alone."""
    return f"*${offset_function().name}({inferior}) + {address:#x}"


class OffsetIn(gdb.Function):
    """0 in the memory of the inferior of a number; elsewhere what nothing can be added to.

    GDB keeps a breakpoint as it is if an expression fails in another inferior because a name is missing, as the
    `operator+` of a struct is; any other failure disables it, with a message.
    """

    name = OFFSET

    def __init__(self) -> None:
        super().__init__(OFFSET)
        struct = gdb.parse_and_eval("$_siginfo").type  # which GDB knows without any program
        self._no_number = gdb.Value(0).cast(struct.pointer()).dereference()

    def invoke(self, *args: gdb.Value) -> gdb.Value:
        """Return the offset in the memory that GDB evaluates the expression for."""
        home = next((inferior for inferior in gdb.inferiors() if inferior.num == int(args[0])), None)
        is_home = home is not None and home.progspace == gdb.current_progspace()
        return gdb.Value(0) if is_home else self._no_number


@cache
def offset_function() -> OffsetIn:
    """Register the function with GDB when it is first needed, by a live thread."""
    return OffsetIn()
