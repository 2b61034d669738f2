"""Read the changing state of ranks where the runtime keeps it, if it reports no switches (rank_debug_kept).

Takes a target, ranks as their records describe them and the words that lead to the rest; gives the ranks as they are
now. Nothing is believed of a running job while its processing elements switched, and no context that does not validate.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Union

from pieglobalsfind.decoders.registry.layout import Kept, ProcessingElement, Records
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.processor import Processor, RegisterRule
from pieglobalsfind.memory_map import mapping_at, of_files
from pieglobalsfind.model import READY, RUNNING, Absent, Rank, Region
from pieglobalsfind.target import MemoryMapping, Target

MOST_TRIES = 20
RESTLESS = "ranks were switched while they were read: stacks are unknown; stop the job, or take a core file"
MAY_RUN = Absent("it may be running", "stop it in a debugger, or take a core file with gcore")
NO_CONTEXT = Absent("the runtime's hook does not know where its registers are saved")
NOT_SAVED = Absent("what it would return to is not code of its runtime", "it may be being switched: look again")
NOT_TOLD = Absent("its runtime's allocator does not say")
NOT_COUNTED = Absent("its runtime does not count them")
NO_HEAP = Absent("where its runtime keeps the end of its heap is invalid")
EMPTY_HEAP = Absent("its allocator has allocated nothing")
_RUNS = Absent("it is running", "its registers are its kernel thread's")


@dataclass(frozen=True)
class Keeper:
    """What leads to the moving facts of ranks; `code` is where saved return addresses may lead to."""

    kept: Mapping[int, Kept]
    heap_starts: Mapping[int, int]
    elements: Sequence[ProcessingElement]
    code: tuple[Region, ...]
    layout: tuple[RegisterRule, ...]
    order: str
    processor: Processor

    @property
    def knows_all(self) -> bool:
        """Whether every processing element's word is known."""
        return bool(self.elements) and all(element.current for element in self.elements)

    def word(self, target: Target, address: int) -> int:
        """Read one word."""
        word: int = struct.unpack(self.order + "Q", target.read(address, 8))[0]
        return word

    def currents(self, target: Target) -> dict[int, ProcessingElement]:
        """What runs, by the words of the processing elements that are known."""
        try:
            return {self.word(target, element.current): element for element in self.elements if element.current}
        except MemoryUnreadable:
            return {}


def keeper_of(
    target: Target, records: Records, layout: tuple[RegisterRule, ...], order: str, processor: Processor
) -> Keeper:
    """Of a runtime that does not publish every switch itself."""
    code = code_of(target.maps(), records.header.entry_function)
    kept = {rank.rank: rank for rank in records.kept}
    heap_starts = {rank.rank: rank.heap_start for rank in records.ranks}
    return Keeper(kept, heap_starts, records.processing_elements, code, layout, order, processor)


def code_of(maps: Sequence[MemoryMapping], address: int) -> tuple[Region, ...]:
    """The executable mappings of the file that an address lies in."""
    holds = mapping_at(maps, address)
    if holds is None or not holds.path:
        return ()
    own = (file for file in of_files(maps, holds.path) if file.path == holds.path and file.executable)
    return tuple(Region(mapping.start, mapping.end - mapping.start) for mapping in own)


def as_now(target: Target, keeper: Keeper, ranks: Sequence[Rank]) -> tuple[tuple[Rank, ...], str]:
    """The ranks with their contexts, heaps and states; and why contexts are missing, "" if they are not."""
    before = keeper.currents(target)
    for _ in range(MOST_TRIES if target.is_live else 1):
        ranks_now = tuple(_now(target, keeper, rank, before) for rank in ranks)
        after = keeper.currents(target)
        if not target.is_live or after == before:
            return ranks_now, ""
        before = after
    return tuple(replace(rank, context=MAY_RUN) if rank.state == READY else rank for rank in ranks_now), RESTLESS


def _now(target: Target, keeper: Keeper, rank: Rank, currents: Mapping[int, ProcessingElement]) -> Rank:
    kept = keeper.kept.get(rank.rank)
    if kept is None or rank.state != READY:
        return rank
    heap = _heap(target, keeper, rank, kept)
    rank = replace(rank, heap=heap, heap_used=NOT_TOLD, switches=NOT_COUNTED, record=0, thread=kept.thread)
    rank = replace(rank, context_at=kept.context)
    element = currents.get(kept.thread)
    if element is not None:
        state = {"processing_element": element.processing_element, "kernel_thread": element.kernel_thread}
        return replace(rank, state=RUNNING, context=_RUNS, **state)  # type: ignore[arg-type]
    if target.is_live and not keeper.knows_all:
        return replace(rank, context=MAY_RUN)
    return replace(rank, context=_context(target, keeper, rank, kept))


def _context(target: Target, keeper: Keeper, rank: Rank, kept: Kept) -> Union[int, Absent]:
    """The word's value, if it is in the rank's stack and its return address in the runtime's code."""
    if not kept.context:
        return NO_CONTEXT
    try:
        context = keeper.word(target, kept.context)
        if not isinstance(rank.stack, Region) or context not in rank.stack:
            return NOT_SAVED
        at = next(
            (
                register_rule.offset
                for register_rule in keeper.layout
                if register_rule.dwarf_register == keeper.processor.pc and register_rule.saved
            ),
            None,
        )
        if at is None:
            return NO_CONTEXT
        saved = keeper.word(target, context + at) & keeper.processor.code_mask
    except MemoryUnreadable:
        return NOT_SAVED
    return context if any(saved in region for region in keeper.code) else NOT_SAVED


def _heap(target: Target, keeper: Keeper, rank: Rank, kept: Kept) -> Union[Region, Absent]:
    """From where its record has it begin to where the runtime has the used part of its range end."""
    start = keeper.heap_starts[rank.rank]
    if not kept.range_end or not isinstance(rank.range, Region):
        return rank.heap
    try:
        end = keeper.word(target, kept.range_end)
    except MemoryUnreadable:
        return NO_HEAP
    if start == end:
        return EMPTY_HEAP
    return Region(start, end - start) if rank.range.start <= start < end <= rank.range.end else NO_HEAP
