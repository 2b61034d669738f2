"""Add the right names to addresses in text that a debugger printed with another rank's symbols.

Takes two ranks' placements, and texts in which a debugger has printed addresses. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.model import Absent, Rank, Rebase, Region

# What is quoted, or an address, and the beginning of a name after it.
_ADDRESS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?P<address>\b0x[0-9a-f]+)(?P<name> <)?""")


@dataclass(frozen=True)
class Addresses:
    """How one rank's addresses look to a debugger that has another rank's symbols.

    `copies` are the rank's own (start, end, distance to the same place in focus), `plain` the regions in which there
    are no symbols, `focus` the copies that the debugger has the symbols of.
    """

    copies: tuple[tuple[int, int, int], ...]
    plain: tuple[Region, ...]
    focus: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, rank: Rank, focus: Rank) -> Addresses:
        """Return what of a rank's addresses belongs to which copy."""
        focused = {rebase.object: rebase.copy for rebase in _rebased(focus)}
        copies = tuple(
            (rebase.copy, rebase.copy + rebase.size, focused[rebase.object] - rebase.copy) for rebase in _rebased(rank)
        )
        regions = (rank.stack, rank.heap)
        plain = tuple(region for region in regions if not isinstance(region, Absent))
        return cls(copies, plain, tuple((rebase.copy, rebase.copy + rebase.size) for rebase in _rebased(focus)))

    def in_focus(self, address: int) -> Optional[int]:
        """The address in focus with the same name in the debugger's symbols; None if the address has no name."""
        if any(address in region for region in self.plain):
            return None
        for start, end, distance in self.copies:
            if start <= address < end:
                return address + distance
        return None if any(start <= address < end for start, end in self.focus) else address


def _rebased(rank: Rank) -> tuple[Rebase, ...]:
    return tuple(
        placement for placement in rank.placements if isinstance(placement, Rebase) and placement.object is not None
    )


def named(text: str, addresses: Addresses, name_after: Callable[[int], str]) -> Optional[str]:
    """The text with the names that a rank's own addresses have; None where one is named by another rank's symbols.

    `name_after` gives what the debugger prints after an address in focus: ` <symbol+4>`, or "".
    """
    parts, at = [], 0
    for match in _ADDRESS.finditer(text):
        if match["address"] is None:
            continue
        address = int(match["address"], 16)
        if any(start <= address < end for start, end in addresses.focus):
            return None
        same = addresses.in_focus(address)
        if match["name"] is None and same is not None and same != address:
            parts.append(text[at : match.end()] + name_after(same))
            at = match.end()
    return "".join(parts) + text[at:]
