"""`$_rank_count()`, `$_rankaddr("symbol", N)` and `$_rank_of(ADDRESS)`.

Takes the face; usable in every expression, conditions included. `$_rank`, a variable, is kept by the selection.
"""

from __future__ import annotations

import gdb

from gdbext.face import ADDRESS, GdbFace
from gdbext.quiet import sentences
from pieglobalsfind.errors import UsageError


class RankAddress(gdb.Function):
    """$_rankaddr("SYMBOL", N): the address of rank N's own SYMBOL (a global, a function or a file static)."""

    def __init__(self, face: GdbFace) -> None:
        super().__init__("_rankaddr")
        self._face = face

    def invoke(self, *args: gdb.Value) -> gdb.Value:
        with sentences():
            symbol, rank = taken(args, 2, '$_rankaddr("SYMBOL", RANK)')
            found = self._face.symbol_address(symbol.string(), int(rank))
            return gdb.Value(found).cast(gdb.lookup_type("void").pointer())


class RankOf(gdb.Function):
    """$_rank_of(ADDRESS): the rank to which an address belongs, -1 if to none."""

    def __init__(self, face: GdbFace) -> None:
        super().__init__("_rank_of")
        self._face = face

    def invoke(self, *args: gdb.Value) -> int:
        with sentences():
            (address,) = taken(args, 1, "$_rank_of(ADDRESS)")
            owner = self._face.owner(int(address) % ADDRESS)
            return -1 if owner.rank is None else owner.rank


class RankCount(gdb.Function):
    """$_rank_count(): how many ranks the job has."""

    def __init__(self, face: GdbFace) -> None:
        super().__init__("_rank_count")
        self._face = face

    def invoke(self, *args: gdb.Value) -> int:
        with sentences():
            taken(args, 0, "$_rank_count()")
            return self._face.moment().table.rank_count


def taken(arguments: tuple[gdb.Value, ...], count: int, usage: str) -> tuple[gdb.Value, ...]:
    """The arguments of a call, if they are as many as there should be."""
    if len(arguments) != count:
        raise UsageError(f"{usage} takes {count} arguments, not {len(arguments)}")
    return arguments


def bind(face: GdbFace) -> None:
    for kind in (RankAddress, RankOf, RankCount):
        kind(face)
    gdb.set_convenience_variable("_rank", -1)
