"""Bring a rank table to a later moment: read again what changes, and search nothing.

Takes a target that stands still and the table of an earlier moment; gives the table of this one, or None where more
than contexts may have changed and the target has to be decoded. It costs two reads however many ranks there are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from pieglobalsfind.decoders.lazy_ranks import with_changes
from pieglobalsfind.decoders.registry.layout import RankRecord, first_form
from pieglobalsfind.decoders.registry.live_state import as_recorded, records_now
from pieglobalsfind.decoders.registry.read_consistent import GENERATION_AT, find
from pieglobalsfind.decoders.running import with_running
from pieglobalsfind.errors import RegistryError
from pieglobalsfind.model import (
    BLOCKED,
    READY,
    REGISTRY,
    RUNNING,
    STARTING,
    STATES,
    Absent,
    Rank,
    RankTable,
    Region,
)
from pieglobalsfind.target import Target, read_many, read_or_none

TIER = "runtime"
AMPI = "AMPI"  # whose current threads, unlike SimGrid's, are current until they have left their stacks
WORD = 8
MAY_RUN = Absent("it may be running", "stop it in a debugger, or take a core file with gcore")

HEAD = "iIIIQ"  # of a rank's record (rank_debug.h): number, state, processing element, kernel thread, context
SUSPENDED = (STATES.index(READY), STATES.index(BLOCKED))

IsKnown = Callable[[int, int], bool]
Marks = tuple[Optional[bytes], ...]
Range = tuple[int, int]  # start, end


def _is_unknown(rank: int, context: int) -> bool:
    return False


@dataclass(frozen=True)
class KnownRanks:
    """A table, and the first word of each rank's thread structure: freeing a structure overwrites that."""

    table: RankTable
    marks: Marks

    @property
    def places(self) -> tuple[Range, ...]:
        """What is read beyond the words that lead to threads and contexts."""
        return ()

    def at_moment(self, target: Target, is_known: IsKnown = _is_unknown) -> Optional[RankTable]:
        """The table as it is in `target`, None if a thread structure is another one now, or can't be read."""
        marks = _marks(target, self.table)
        if marks != self.marks or None in marks:
            return None
        contexts = _words(target, [rank.context_at for rank in self.table.ranks])
        if any(word is None and rank.context_at for word, rank in zip(contexts, self.table.ranks)):
            return None
        current = set(_words(target, self.table.currents)) if self.table.runtime == AMPI else set()
        ranks = tuple(_now(rank, word, rank.thread in current) for rank, word in zip(self.table.ranks, contexts))
        return with_running(replace(self.table, ranks=ranks), target.threads())


@dataclass(frozen=True)
class KnownRecords:
    """A registry's table, and where its generation is, which changes whenever a rank comes, goes or moves."""

    table: RankTable
    generation: int

    @property
    def places(self) -> tuple[Range, ...]:
        """The generation, and the ranks' records."""
        size = self.table.record_size
        records = ((rank.record, rank.record + size) for rank in self.table.ranks)
        return (self.generation, self.generation + WORD), *records

    def at_moment(self, target: Target, is_known: IsKnown = _is_unknown) -> Optional[RankTable]:
        """The table as it is in `target`, None if the registry has changed, or can't be read.

        A rank that is suspended now as before is taken as unchanged, if `is_known(its number, its context)`.
        """
        order = "little" if self.table.byte_order == "<" else "big"
        (generation,) = read_many(target, [(self.generation, WORD)])
        if generation is None or int.from_bytes(generation, order) != self.table.generation:  # type: ignore[arg-type]
            return None
        changes: dict[int, Rank] = {}
        head = struct.Struct(self.table.byte_order + HEAD)
        for index, (rank, record) in enumerate(zip(self.table.ranks, self._records(target))):
            if record is None:
                return None
            number, state, _, _, context = head.unpack_from(record)
            was_suspended = number == rank.rank and rank.state in (READY, BLOCKED)
            if was_suspended and state in SUSPENDED and is_known(number, context):
                continue
            try:
                now = as_recorded(self.table, rank, record)
            except RegistryError:
                return None
            if now is not rank:
                changes[index] = now
        return replace(self.table, ranks=with_changes(self.table.ranks, changes)) if changes else self.table

    def _records(self, target: Target) -> Sequence[Optional[bytes]]:
        """The ranks' records; one read serves for all if they are consecutive, as in a table."""
        ranks, size = self.table.ranks, self.table.record_size
        first, stride = ranks[0].record, ranks[1].record - ranks[0].record if len(ranks) > 1 else size
        if stride == size and all(rank.record == first + at * stride for at, rank in enumerate(ranks)):
            data = read_or_none(target, first, stride * len(ranks))
            if data is not None:
                short = struct.calcsize(self.table.byte_order + first_form(RankRecord))
                return [data[at : at + short] for at in range(0, len(data), stride)]
        return records_now(target, self.table, ranks)


def known_ranks(target: Target, table: RankTable) -> Optional[Union[KnownRanks, KnownRecords]]:
    """What a later table can be made from; None where that takes decoding, as of ranks that start."""
    if table.evidence.tier == REGISTRY:
        place = find(target, target.maps()) if table.ranks and table.generation % 2 == 0 else None
        return None if place is None else KnownRecords(table, place[0] + GENERATION_AT)
    if table.evidence.tier != TIER or not table.ranks:
        return None
    if table.context_layout and not all(map(_can_be_followed, table.ranks)):
        return None
    return KnownRanks(table, _marks(target, table))


def _can_be_followed(rank: Rank) -> bool:
    if rank.state == STARTING:
        return False
    has_context = bool(rank.context_at) or isinstance(rank.context, int)
    return not isinstance(rank.stack, Region) or bool(rank.thread and has_context)


def _now(rank: Rank, context: Optional[int], is_current: bool) -> Rank:
    if not rank.context_at:  # a kernel thread of its own, a context that never moves, or no thread at all
        return rank
    if is_current:
        return replace(rank, state=RUNNING, context=MAY_RUN)
    return replace(rank, state=READY, kernel_thread=0, context=MAY_RUN if context is None else context)


def _marks(target: Target, table: RankTable) -> Marks:
    return tuple(read_many(target, [(rank.thread, WORD) for rank in table.ranks if rank.thread]))


def _words(target: Target, places: Sequence[int]) -> list[Optional[int]]:
    words = read_many(target, [(place, WORD) for place in places])
    return [None if data is None else int.from_bytes(data, "little") for data in words]
