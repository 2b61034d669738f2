"""What is known of one address, as a line for people and as a JSON object.

Takes an address and asks translate and symbolize; formats what they say and decides nothing. Nothing that came from the
target reaches a screen as a control character.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Owner, RankTable, Symbol
from pieglobalsfind.ranks.symbolize import Symbolizer
from pieglobalsfind.ranks.translate import IN_USE, Translator
from pieglobalsfind.ranks.variable_address import data_place, nominal
from pieglobalsfind.shell.escape import escape
from pieglobalsfind.target import Target

GAP = "  "
REFRESH = 1.0  # seconds between two looks at a running process for what has come to be mapped


@dataclass(frozen=True)
class Answer:
    """All about one address. `place` is the object, file or region that `owner.offset` counts from; "" if none.

    `tier` says how the rank was found ("" without a rank).
    """

    owner: Owner
    place: str
    symbol: Union[Symbol, Absent]
    tier: str

    @property
    def found(self) -> bool:
        """Whether the address belongs to anything."""
        return self.owner.kind != "unmapped"

    @property
    def reason(self) -> str:
        """Why something is missing: no owner, or no symbol where there should be one."""
        if isinstance(self.symbol, Absent) and self.owner.kind in (
            "code",
            "data",
            "rodata",
            "original",
            "shared",
            "runtime",
        ):
            return self.owner.reason or (self.symbol.reason if self.place.startswith("/") else "")
        return self.owner.reason

    @property
    def line(self) -> str:
        """`0x200040801234  rank 1  code  solver+0x1234  sweep+0x14  solver.c:81  original 0x7f21a4c01234`."""
        return f"{self.owner.address:#x}{GAP}{self.knowledge}"

    @property
    def knowledge(self) -> str:
        """The line without the address."""
        owner = self.owner
        whose = "no rank" if owner.rank is None else f"rank {owner.rank}"
        parts = [f"{whose} (by scan)" if self.tier == "scan" else whose, owner.kind]
        if self.place:
            parts.append(f"{self.place.rpartition('/')[2]}+{owner.offset:#x}")
        if isinstance(self.symbol, Symbol):
            parts.append(f"{self.symbol.name}+{self.symbol.offset:#x}")
            if self.symbol.file:
                parts.append(f"{self.symbol.file.rpartition('/')[2]}:{self.symbol.line}")
        if owner.rank is not None and owner.original:
            parts.append(f"original {owner.original:#x}")
        if self.reason:
            parts.append(f"({self.reason})")
        return escape(GAP.join(parts)).replace("\n", "\\012")

    @property
    def record(self) -> dict[str, Union[str, int, None]]:
        """The JSON object: addresses are strings, offsets are numbers of bytes, null is what there is none of."""
        owner, symbol = self.owner, self.symbol if isinstance(self.symbol, Symbol) else None
        return {
            "address": f"{owner.address:#x}",
            "rank": owner.rank,
            "tier": self.tier or None,
            "kind": owner.kind,
            "object": self.place or None,
            "offset": owner.offset if self.place else None,
            "symbol": symbol.name if symbol else None,
            "linkage_name": symbol.linkage_name if symbol else None,
            "symbol_offset": symbol.offset if symbol else None,
            "symbol_size": symbol.size if symbol else None,
            "file": (symbol.file or None) if symbol else None,
            "line": (symbol.line or None) if symbol else None,
            "original": f"{owner.original:#x}" if owner.original else None,
            "reason": self.reason or None,
        }


class Finder:
    """Answers about one target; of a running one it looks again when an address is nowhere in what it knows."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._seen = 0.0
        self._look()

    def _look(self) -> None:
        self.table: RankTable = decode(self._target)
        self._translator = Translator(self.table, self._target.maps())
        self._symbolizer = Symbolizer(self._target, self.table)
        self._tiers = {rank.rank: rank.evidence.tier for rank in self.table.ranks}
        self._seen = time.monotonic()

    def answer(self, address: int) -> Answer:
        """All about `address`."""
        owner = self._translator.owner(address)
        if owner.kind == "unmapped" and self._target.is_live and time.monotonic() - self._seen > REFRESH:
            owner = self._owner_now(address) or owner
        tier = self._tiers.get(owner.rank, "") if owner.rank is not None else ""
        return Answer(owner, self._place(owner), self._symbolizer.symbol(owner), tier)

    def nominal(self, owner: Owner) -> list[int]:
        """Where the ranks' copies have what their code uses in the original, because privatization failed."""
        if owner.reason != IN_USE or owner.object is None:
            return []
        elf_object = self.table.objects[owner.object]
        places = (data_place(nominal(rank), elf_object, owner.address) for rank in self.table.ranks)
        return [place for place in places if isinstance(place, int)]

    def _owner_now(self, address: int) -> Optional[Owner]:
        self._seen = time.monotonic()
        try:
            self._look()
        except RanklensError:
            return None  # the process has ended: what was known of it still holds for its log
        return self._translator.owner(address)

    def _place(self, owner: Owner) -> str:
        """What the owner's offset counts from."""
        if owner.object is not None and (owner.kind != "tls" or owner.rank is not None):
            return self.table.objects[owner.object].path
        return owner.kind if owner.kind in ("stack", "heap", "tls") else owner.path
