"""Recognize events of AMPI's ranks (begin, migration) by calls of functions that every AMPI program exports.

Takes a stopped target, a way to decode it and a call's first two arguments; gives the event in the words of the debug
ABI (rank_debug.h), or None. It sets no breakpoint and knows no debugger.

- TCHARM_Element_Setup(rank, ...) makes a rank's copies: before the first of them, nothing is copied.
- AMPI_threadstart(...) is a rank's beginning, in its own thread: no rank has run before the first.
- CthPup(pupper, thread) packs a rank's thread, and its memory with it.
- CmiIsomallocContextJustMigrated(share) is called for every rank when a step of load balancing is over, and leaves it
  whole. CthPup's return would be too early: AMPI fetches a rank's memory later than its thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from typing import Optional

from pieglobalsfind.decoders.registry.layout import AFTER_COPIES, AFTER_UNPACK, BEFORE_COPIES, BEFORE_PACK, CREATED
from pieglobalsfind.model import RankTable, Region
from pieglobalsfind.target import Target, read_or_none

SETUP, BEGIN, PUP, ARRIVED = (
    "TCHARM_Element_Setup",
    "AMPI_threadstart",
    "CthPup",
    "CmiIsomallocContextJustMigrated",
)
RETURNED = "return from " + ARRIVED  # where its caller goes on
FUNCTIONS = (SETUP, BEGIN, PUP, ARRIVED)
STATE_AT = 8  # of PUP::er's flags, behind its table of virtual functions
SIZING, PACKING, UNPACKING = 0x100, 0x200, 0x400
THREAD_WORDS, SHARE_WORDS = 0x40, 0x20  # of structures that are searched for a rank's own addresses

Event = tuple[int, int]  # kind, rank (-1: all)
Decode = Callable[[], RankTable]


class Calls:
    """The events of one process."""

    def __init__(self) -> None:
        self._copying = False
        self._begun = False
        self._shares: dict[int, int] = {}  # by the stack pointer with which the call returns

    def event(
        self, target: Target, decode: Decode, function: str, arguments: tuple[int, int, int], here: Container[int]
    ) -> Optional[Event]:
        """What a call means. `arguments`: the first two, and the stack pointer; `here`: ranks known to be here."""
        first, second, pointer = arguments
        if function == SETUP:
            was_copying, self._copying = self._copying, True
            return None if was_copying else (BEFORE_COPIES, -1)
        if function == BEGIN:
            was_begun, self._begun = self._begun, True
            return (CREATED, rank_with_stack(decode(), pointer)) if was_begun else (AFTER_COPIES, -1)
        if function == PUP:
            return (
                (BEFORE_PACK, rank_of_words(target, decode(), second, THREAD_WORDS)) if packs(target, first) else None
            )
        if function == ARRIVED:
            self._shares[pointer + 8] = first
            return None
        share = self._shares.pop(pointer, 0)
        rank = rank_of_words(target, decode(), share, SHARE_WORDS) if share else -1
        return None if rank in here or rank < 0 else (AFTER_UNPACK, rank)


def packs(target: Target, pupper: int) -> bool:
    """Whether a pupper packs; one whose state makes no sense is taken to: breakpoints are then taken out in vain."""
    state = read_or_none(target, pupper + STATE_AT, 4) or b""
    doing = int.from_bytes(state, "little") & (SIZING | PACKING | UNPACKING)
    return doing not in (SIZING, UNPACKING)


def rank_with_stack(table: RankTable, pointer: int) -> int:
    """The rank that runs with a stack pointer, -1 for none."""
    return next((rank.rank for rank in table.ranks if isinstance(rank.stack, Region) and pointer in rank.stack), -1)


def rank_of_words(target: Target, table: RankTable, address: int, count: int) -> int:
    """The rank whose share begins at the first such address that a structure of AMPI's names, -1 if none does.

    A share's record names its start and then its end, where another rank's begins.
    """
    sizes = (8 * count, 4 * count, 2 * count)  # the structure may end before an unmapped page
    data = next((data for data in (read_or_none(target, address, size) for size in sizes) if data is not None), b"")
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    starts = {rank.range.start: rank.rank for rank in table.ranks if isinstance(rank.range, Region)}
    return next((starts[word] for word in words if word in starts), -1)
