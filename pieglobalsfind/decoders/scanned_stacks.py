"""The stacks of ranks that kernel threads are on, where nothing but copies tells of ranks.

Takes a table of copies and a target that stands still. A thread whose stack returns into one rank's code alone is on
that rank's stack: only that rank's functions are called there. Where a suspended rank has saved its registers can't be
told so: of all places in its stack that could be a saved context, many lead to its main function, all but one of them
from calls that have returned long ago.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pieglobalsfind.decoders.running import stack_pointer
from pieglobalsfind.decoders.saved_context import is_return_address
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import RankTable, Rebase, Region
from pieglobalsfind.target import KernelThread, MemoryMapping, Target, read_or_none
from pieglobalsfind.targets.pausing import NEAR

Code = list[tuple[int, int, int]]  # ascending: where the code of a copy begins and ends, and the rank's index


def with_stacks(target: Target, table: RankTable, maps: Sequence[MemoryMapping]) -> RankTable:
    """The table with the stacks of ranks that kernel threads are on; of a running process nothing can be told."""
    code = sorted(_code_of(table))
    if target.is_live or not code:
        return table
    found = [one for thread in target.threads() for one in _rank_on(target, table, maps, code, thread)]
    claims = Counter(index for index, _ in found)
    stacks = {index: stack for index, stack in found if claims[index] == 1}
    ranks = (replace(rank, stack=stacks[at]) if at in stacks else rank for at, rank in enumerate(table.ranks))
    return replace(table, ranks=tuple(ranks))


def _code_of(table: RankTable) -> Iterator[tuple[int, int, int]]:
    for index, rank in enumerate(table.ranks):
        for copy in rank.placements:
            if isinstance(copy, Rebase) and copy.object is not None:
                for segment in table.objects[copy.object].segments:
                    if segment.executable:
                        yield copy.copy + segment.offset, copy.copy + segment.end, index


def _rank_on(
    target: Target, table: RankTable, maps: Sequence[MemoryMapping], code: Code, thread: KernelThread
) -> Iterator[tuple[int, Region]]:
    """The index and the stack of the one rank whose code a thread's stack returns to."""
    pointer = stack_pointer(thread, table.processor)
    mapping = mapping_at(maps, pointer) if pointer >= 0 else None
    if mapping is None or not mapping.writable:
        return
    start = -(-pointer // 8) * 8
    words = array("Q", read_or_none(target, start, min(mapping.end - start, NEAR)) or b"")
    starts = [one[0] for one in code]
    entered = set()
    for word in words:
        first, end, index = code[bisect_right(starts, word) - 1]
        if first <= word < end and index not in entered and is_return_address(target, table.processor, word):
            entered.add(index)
    if len(entered) == 1:
        yield entered.pop(), Region(mapping.start, mapping.end - mapping.start)
