"""Names the addresses that a rank holds, so that the names of two ranks are equal when they mean the same thing.

Takes what translates and names addresses: `<counter+4>` is the rank's own, `<rank 3: counter>` another's, `<original:
counter>` no rank's. An address is never shown without its owner.
"""

from __future__ import annotations

from pieglobalsfind.model import Absent, Owner, RankTable
from pieglobalsfind.ranks.symbolize import Symbolizer
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.shell.escape import harmless

KINDS_WITH_SYMBOLS = ("code", "data", "rodata", "original", "shared", "runtime")


class AddressNames:
    """Names addresses for one target; remembers what it found."""

    def __init__(self, table: RankTable, translator: Translator, symbolizer: Symbolizer) -> None:
        self._table = table
        self._translator = translator
        self._symbolizer = symbolizer
        self._symbols: dict[int, str] = {}

    def name(self, rank: int, address: int) -> str:
        """`<symbol+offset>`, with whose it is unless it is `rank`'s own."""
        owner = self._translator.owner(address)
        if owner.kind == "unmapped":
            return f"{address:#x}"
        if owner.kind == "original":
            return f"<original: {self._symbol(owner)}>"
        if owner.rank is None or owner.rank == rank:
            return f"<{self._place(owner)}>"
        return f"<rank {owner.rank}: {self._place(owner)}>"

    def _place(self, owner: Owner) -> str:
        if owner.kind in KINDS_WITH_SYMBOLS:
            return self._symbol(owner)
        return f"{owner.kind}+{owner.offset:#x}"

    def _symbol(self, owner: Owner) -> str:
        key = owner.original or owner.address
        if key not in self._symbols:
            self._symbols[key] = self._find_symbol(owner)
        return self._symbols[key]

    def _find_symbol(self, owner: Owner) -> str:
        symbol = self._symbolizer.symbol(owner)
        if not isinstance(symbol, Absent):
            return harmless(symbol.name) + (f"+{symbol.offset}" if symbol.offset else "")
        if owner.object is None:
            return f"{owner.kind} {owner.address:#x}"
        name = self._table.objects[owner.object].path.rpartition("/")[2]
        return f"{harmless(name)}+{owner.offset:#x}"
