"""Ranks by the debug ABI: what a runtime publishes in its registry (rank_debug.h), as a `RankTable`.

Takes a target; gives None if it has no registry. Every record is checked before it is used; [live] fields of a running
process are read until they stand still; a rank that is switched all the time has no known context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional, TypeVar, Union

from pieglobalsfind import model
from pieglobalsfind.decoders.lazy_ranks import NOWHERE, Columns, RanksOnDemand
from pieglobalsfind.decoders.registry import layout
from pieglobalsfind.decoders.registry.layout import Records, path_text, text
from pieglobalsfind.decoders.registry.live_state import GONE, SWITCHING, context_of, waiting_of
from pieglobalsfind.decoders.registry.read_consistent import Snapshot, is_current, take, too_fast
from pieglobalsfind.decoders.registry.validate import check
from pieglobalsfind.decoders.registry.validate_copies import CopyCheck
from pieglobalsfind.machine.lookup import processor_of
from pieglobalsfind.machine.processor import RegisterRule
from pieglobalsfind.model import Absent, Evidence, Object, Placement, RankTable, Region, Segment
from pieglobalsfind.target import Target

ADDRESSES = 1 << 64
MOST_MOMENTS = 20  # a job that creates or moves a rank while each is read, would be read for ever
TORN = "the registry was being changed at this moment; what it says of ranks and copies may be half of that change"

OfRank = TypeVar("OfRank", layout.Redirection, layout.Copy, layout.TlsBlockRecord, layout.RootRecord)

_NO_STACK = Absent("the runtime does not say where its stack is")
_NO_HEAP = Absent("the runtime does not say where its heap is")
_NO_RANGE = Absent("it has no address range of its own")


def decode(target: Target) -> Optional[RankTable]:
    """The rank table of the target's registry; raises `RegistryError` if there is one that can't be believed."""
    for _ in range(MOST_MOMENTS):
        snapshot = take(target)
        if snapshot is None:
            return None
        check(snapshot.records)
        table = _table(target, snapshot)
        if not snapshot.records.kept or is_current(target, snapshot):
            return table  # else the runtime's own words may be of ranks that the records do not know yet
    raise too_fast(target)


def _table(target: Target, snapshot: Snapshot) -> RankTable:
    records, header = snapshot.records, snapshot.records.header
    calls = tuple(text(call.name) or "an unnamed call" for call in records.calls)
    processor = processor_of(header.machine)
    registers = tuple(
        RegisterRule(register.dwarf_register, register.rule == layout.REGISTER_AT_OFFSET, register.offset)
        for register in records.context_registers
    )
    evidence, keeper, warning = Evidence(model.REGISTRY, snapshot.source), None, ""
    if records.kept:
        from pieglobalsfind.decoders.registry import external_state  # late, as few runtimes need it

        keeper = external_state.keeper_of(target, records, registers, snapshot.order, processor)
        evidence = Evidence(model.HOOK, snapshot.source)
    ranks: Sequence[model.Rank] = _ranks(target, snapshot, evidence, calls)
    if keeper is not None:
        ranks, warning = external_state.as_now(target, keeper, ranks)
    heap = Region(header.constructor_heap, header.constructor_heap_size) if header.constructor_heap_size else None
    return RankTable(
        method=text(header.method),
        runtime=text(header.runtime),
        rewrite_mode=text(header.rewrite_mode),
        job_id=text(header.job_id),
        node=text(header.node),
        process_id=header.process_id,
        process_index=header.process_index,
        process_count=header.process_count,
        rank_count=header.rank_count,
        generation=header.generation,
        objects=_objects(records),
        ranks=ranks,
        context_layout=registers,
        processor=processor,
        evidence=evidence,
        entry_function=header.entry_function,
        entry_function_size=header.entry_function_size,
        event_function=header.event_function,
        constructor_heap=heap,
        constructor_blocks=tuple((block.address, block.size) for block in records.blocks),
        warnings=(*((TORN,) if snapshot.torn else ()), *((warning,) if warning else ())),
        calls=calls,
        byte_order=snapshot.order,
        record_size=snapshot.record_size,
        currents=tuple(element.current for element in keeper.elements) if keeper and keeper.knows_all else (),
    )


def _objects(records: Records) -> tuple[Object, ...]:
    segments = [
        Segment(segment.offset, segment.memory_size, segment.file_size, segment.protection & 7)
        for segment in records.segments
    ]
    return tuple(
        Object(
            index=index,
            path=path_text(records.strings[object_record.path : object_record.path + 4096]),
            build_id=object_record.build_id[: object_record.build_id_size],
            base=object_record.base,
            load_bias=object_record.load_bias,
            span=object_record.span,
            segments=tuple(
                segments[object_record.first_segment : object_record.first_segment + object_record.segment_count]
            ),
            privatized=bool(object_record.flags & layout.OBJECT_PRIVATIZED),
            is_program=bool(object_record.flags & layout.OBJECT_PROGRAM),
            dynamic=object_record.dynamic,
            tls_module_id=object_record.tls_module_id,
            tls_size=object_record.tls_size,
            tls_align=object_record.tls_align,
            tls_offset=object_record.tls_offset,
        )
        for index, object_record in enumerate(records.objects)
    )


def _ranks(target: Target, snapshot: Snapshot, evidence: Evidence, calls: tuple[str, ...]) -> RanksOnDemand:
    """In ascending order."""
    records = sorted(zip(snapshot.records.ranks, snapshot.rank_addresses))
    parts = RankParts(target, snapshot.records)

    def make(index: int) -> model.Rank:
        rank_record, record = records[index]
        return _rank(
            rank_record, parts.placements(rank_record), calls, evidence, rank_record.rank in snapshot.restless, record
        )

    return RanksOnDemand(_columns([rank_record for rank_record, _ in records], parts), make)


def _columns(rank_records: Sequence[layout.RankRecord], parts: RankParts) -> Columns:
    gone = model.STATES.index(model.MIGRATED_OUT)
    away = {rank_record.rank for rank_record in rank_records if rank_record.state == gone}
    column = (
        dict(zip(layout.RankRecord._fields, zip(*rank_records)))
        if rank_records
        else dict.fromkeys(layout.RankRecord._fields, ())
    )
    starts, sizes = column["stack_start"], column["stack_size"]
    stacks = [
        (start, start + size) if size and state != gone else NOWHERE
        for start, size, state in zip(starts, sizes, column["state"])
    ]
    copies = sorted(base for rank, _, base in parts.records.copies if rank not in away)
    return Columns(column["rank"], stacks, copies, frozenset(column["address_space"]) - {0})


def _rank(
    rank_record: layout.RankRecord,
    placements: tuple[Placement, ...],
    calls: tuple[str, ...],
    evidence: Evidence,
    restless: bool,
    record: int,
) -> model.Rank:
    state = model.STATES[rank_record.state]
    gone = state == model.MIGRATED_OUT
    return model.Rank(
        rank_record.rank,
        state,
        rank_record.processing_element,
        rank_record.kernel_thread,
        SWITCHING if restless else context_of(rank_record),
        _region(rank_record.stack_start, rank_record.stack_size, gone, _NO_STACK),
        _region(rank_record.heap_start, rank_record.heap_size, gone, _NO_HEAP),
        rank_record.heap_used if rank_record.heap_size and not gone else _NO_HEAP,
        _region(rank_record.range_start, rank_record.range_size, False, _NO_RANGE),
        waiting_of(rank_record, calls),
        rank_record.switches,
        () if gone else placements,
        evidence,
        rank_record.address_space,
        record,
        -1 if rank_record.process == layout.NONE else rank_record.process,
        rank_record.moves,
        rank_record.exit_status - 1 if rank_record.exit_status else None,
        context_at=record + layout.CONTEXT_AT,
    )


def _region(start: int, size: int, gone: bool, none: Absent) -> Union[Region, Absent]:
    if gone:
        return GONE
    return Region(start, size) if size else none


class RankParts:
    """What the records say of ranks' memory, by rank."""

    def __init__(self, target: Target, records: Records) -> None:
        self.records = records
        self._check = CopyCheck(target, records)
        self._users = Counter(moved.storage for moved in records.redirections)
        self._moved = by_rank(records.redirections)
        self._copies = by_rank(records.copies)
        self._blocks = by_rank(records.tls_blocks)
        self._roots = by_rank(records.roots)

    def placements(self, rank_record: layout.RankRecord) -> tuple[Placement, ...]:
        """A rank's placements, the special before the general: the first that matches wins."""
        number = rank_record.rank
        alias = (model.Alias(0, ADDRESSES, rank_record.address_space),) if rank_record.address_space else ()
        return (
            *map(self._redirect, self._moved.get(number, ())),
            *self._images(rank_record),
            *self._heap(rank_record),
            *map(_tls_block, self._blocks.get(number, ())),
            *map(self._root, self._roots.get(number, ())),
            *alias,
        )

    def _redirect(self, moved: layout.Redirection) -> Placement:
        shared = self._users[moved.storage] > 1
        return model.Redirect(moved.object, moved.original, moved.size, moved.storage, moved.got_slot, shared)

    def _images(self, rank: layout.RankRecord) -> Iterator[Placement]:
        """The rank's copies; of one that can't be believed that it is somewhere."""
        copies = self._copies.get(rank.rank, [])
        problems = self._check.problems(rank, copies)
        yield from (self._rebase(copy) for copy in copies if copy.object not in problems)
        for number, reason in problems.items():
            original = self.records.objects[number]
            yield model.Unplaced(number, original.base, original.span, reason)

    def _rebase(self, copy: layout.Copy) -> Placement:
        object_record = self.records.objects[copy.object]
        return model.Rebase(copy.object, object_record.base, object_record.span, copy.base)

    def _heap(self, rank_record: layout.RankRecord) -> Iterator[Placement]:
        """What constructors allocated, if the rank's heap began as a replay of it (not with exact rewriting)."""
        start, size = self.records.header.constructor_heap, self.records.header.constructor_heap_size
        if size and self.records.blocks and rank_record.heap_size >= size:
            yield model.Rebase(None, start, size, rank_record.heap_start)

    def _root(self, root: layout.RootRecord) -> Placement:
        name = text(self.records.strings[root.type_name : root.type_name + 4096])
        return model.Root(root.object, name, root.address)


def _tls_block(block: layout.TlsBlockRecord) -> Placement:
    whose = None if block.object == layout.NONE else block.object
    pointer = block.kind == layout.TLS_THREAD_POINTER
    return model.TlsBlock(whose, block.address, block.size, pointer, block.level)


def by_rank(records: Iterable[OfRank]) -> dict[int, list[OfRank]]:
    """Records by the rank that they begin with, in their own order."""
    records_of: dict[int, list[OfRank]] = {}
    for record in records:
        records_of.setdefault(record[0], []).append(record)  # by its place: an attribute takes twice as long
    return records_of
