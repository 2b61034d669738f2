"""`$_rankaddr("symbol", N)`, `$_rank_of(ADDRESS)` and `$_rank_globals()`.

Takes the `GdbDebugger`; usable in every expression, conditions included. `$_rank` and `$_rank_count`, variables, are
kept by the selection and by what knows the inferiors' ranks.
"""

from __future__ import annotations

from contextlib import suppress

import gdb

from gdbext.gdb_api.hooks import with_program
from gdbext.gdb_api.run_commands import sentences, set_convenience
from gdbext.selection.debugger import ADDRESS, GdbDebugger
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Root


class RankAddress(gdb.Function):
    """$_rankaddr("SYMBOL", N): the address of rank N's own SYMBOL (a global, a function or a file static)."""

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__("_rankaddr")
        self._debugger = debugger

    def invoke(self, *args: gdb.Value) -> gdb.Value:
        """Return a symbol's address in a rank."""
        with sentences():
            symbol, rank = taken(args, 2, '$_rankaddr("SYMBOL", RANK)')
            # late, as is all that sourcing the extension does not need
            from gdbext.selection.symbol_address import address_of

            address = address_of(self._debugger, symbol.string(), int(rank))
            return gdb.Value(address).cast(gdb.lookup_type("void").pointer())


class RankOf(gdb.Function):
    """$_rank_of(ADDRESS): the rank to which an address belongs, -1 if to none."""

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__("_rank_of")
        self._debugger = debugger

    def invoke(self, *args: gdb.Value) -> int:
        """Return the rank that owns an address, or -1."""
        with sentences():
            (address,) = taken(args, 1, "$_rank_of(ADDRESS)")
            owner = self._debugger.owner(int(address) % ADDRESS)
            return -1 if owner.rank is None else owner.rank


class RankGlobals(gdb.Function):
    """$_rank_globals(): the struct in which the rank in question itself keeps its globals, if it has told where.

    That is the selected one; in a breakpoint's condition the one that stops, and each in turn in `rank print`.
    """

    def __init__(self, debugger: GdbDebugger) -> None:
        super().__init__("_rank_globals")
        self._debugger = debugger

    def invoke(self, *args: gdb.Value) -> gdb.Value:
        """Return the struct that holds the selected rank's globals."""
        with sentences():
            taken(args, 0, "$_rank_globals()")
            moment, rank = self._debugger.moment(), self._debugger.in_focus
            if rank is None:
                raise UsageError("no rank is selected", "select one by `rank N`")
            for placement in moment.rank(rank).placements:
                if isinstance(placement, Root):
                    return gdb.Value(placement.address).cast(lookup_type(placement.type_name).pointer()).dereference()
            raise UsageError(f"rank {rank} has not said where it keeps its globals", "see rank_program.h")


def lookup_type(name: str) -> gdb.Type:
    """A type by its name, in C by its tag as well."""
    with suppress(gdb.error):
        return gdb.lookup_type(name)
    return gdb.lookup_type(f"struct {name}")


def taken(arguments: tuple[gdb.Value, ...], count: int, usage: str) -> tuple[gdb.Value, ...]:
    """The arguments of a call, if they are as many as there should be."""
    if len(arguments) != count:
        raise UsageError(f"{usage} takes {count} arguments, not {len(arguments)}")
    return arguments


def bind(debugger: GdbDebugger) -> None:
    """Register the convenience functions and variables."""

    def register() -> None:
        for kind in (RankAddress, RankOf, RankGlobals):
            kind(debugger)
        set_convenience("_rank", -1)
        set_convenience("_rank_count", 0)

    with_program(register)
