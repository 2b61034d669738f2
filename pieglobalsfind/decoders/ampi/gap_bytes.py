"""Count the bytes between the known parts of a rank's memory: they migrate with the rank.

Takes a rank of a table. AMPI does so with what its isomalloc has given out for the rank (isomalloc.C, isommap::pup):
stack, copies, thread-local storage, and the heap at last.
"""

from __future__ import annotations

from pieglobalsfind.model import Absent, Rank, RankTable, Rebase, Region, TlsBlock


def gap_bytes(table: RankTable, rank: Rank) -> int:
    """Bytes before the rank's heap that no part has; 0 if its runtime sends parts, or they are unknown."""
    whole, heap = rank.range, rank.heap
    if table.runtime != "AMPI" or isinstance(whole, Absent) or isinstance(heap, Absent) or heap.start not in whole:
        return 0
    parts = rank.stack.size if isinstance(rank.stack, Region) else 0
    for placement in rank.placements:
        if isinstance(placement, Rebase) and placement.object is not None and placement.copy in whole:
            parts += sum(segment.memory_size for segment in table.objects[placement.object].segments)
        elif isinstance(placement, TlsBlock) and placement.level == 0:
            parts += placement.size
    return max(heap.start - whole.start - parts, 0)
