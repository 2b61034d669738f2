"""Find the stacks of ranks of which only copies are known.

Takes a table of copies and a target that stands still. A stack that returns into one rank's code alone is that rank's:
only that rank's functions are called there. Kernel threads lead to the stacks of ranks that run, contexts that the
runtime names to those of the others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.decoders.running import stack_pointer
from pieglobalsfind.decoders.saved_context import is_return_address
from pieglobalsfind.decoders.scanned_contexts import suspended
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import Absent, RankTable, Rebase, Region
from pieglobalsfind.target import MemoryMapping, Target, read_or_none
from pieglobalsfind.targets.stop_and_copy import NEAR

Code = list[tuple[int, int, int]]  # ascending: where the code of a copy begins and ends, and the rank's index


def with_stacks(target: Target, table: RankTable, maps: Sequence[MemoryMapping]) -> RankTable:
    """The table with the stacks of ranks that kernel threads are on; of a running process nothing can be told."""
    code = sorted(_code_of(table))
    if target.is_live or not code:
        return table
    on_threads = (stack_pointer(thread, table.processor) for thread in target.threads())
    index_of = partial(_rank_on, target, table, maps, code)
    pointers = [(index_of(pointer), pointer) for pointer in on_threads]
    claims = Counter(index for index, _ in pointers)
    stacks = {index: pointer for index, pointer in pointers if index is not None and claims[index] == 1}
    contexts = suspended(target, maps, table.processor, index_of)
    ranks = []
    for at, rank in enumerate(table.ranks):
        named = contexts.get(at)
        if named is not None:
            rank = replace(rank, context=named.context, context_at=named.word)
        pointer = stacks.get(at, named.context if named is not None else -1)
        ranks.append(replace(rank, stack=_stack_at(maps, pointer)) if pointer >= 0 else rank)
    layout = next((named.layout for named in contexts.values()), ())
    return replace(table, ranks=tuple(ranks), context_layout=layout)


def _code_of(table: RankTable) -> Iterator[tuple[int, int, int]]:
    for index, rank in enumerate(table.ranks):
        for copy in rank.placements:
            if isinstance(copy, Rebase) and copy.object is not None:
                for segment in table.objects[copy.object].segments:
                    if segment.executable:
                        yield copy.copy + segment.offset, copy.copy + segment.end, index


def _rank_on(
    target: Target, table: RankTable, maps: Sequence[MemoryMapping], code: Code, pointer: int
) -> Optional[int]:
    """The index of the one rank whose code a stack returns to, by its stack pointer."""
    mapping = mapping_at(maps, pointer) if pointer >= 0 else None
    if mapping is None or not mapping.writable:
        return None
    start = -(-pointer // 8) * 8
    words = array("Q", read_or_none(target, start, min(mapping.end - start, NEAR)) or b"")
    starts = [mapping[0] for mapping in code]
    entered = set()
    for word in words:
        first, end, index = code[bisect_right(starts, word) - 1]
        if first <= word < end and index not in entered and is_return_address(target, table.processor, word):
            entered.add(index)
    return entered.pop() if len(entered) == 1 else None


def _stack_at(maps: Sequence[MemoryMapping], pointer: int) -> Union[Region, Absent]:
    """The memory that a stack pointer is in."""
    mapping = mapping_at(maps, pointer)
    return Region(mapping.start, mapping.end - mapping.start) if mapping is not None else Absent("it is not mapped")
