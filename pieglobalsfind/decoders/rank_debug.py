"""Ranks by the debug ABI: what a runtime publishes in its registry (rank_debug.h), as a `RankTable`.

Takes a target; gives None if it has no registry. Every record is checked before it is used; [live] fields of a running
process are read until they stand still; a rank that is switched all the time has no known context.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.decoders import kept
from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.decoders.rank_state import GONE, MOST_TRIES, SWITCHING, context_of, moment_of, waiting_of
from pieglobalsfind.decoders.registry_check import check
from pieglobalsfind.decoders.registry_layout import Records, path_text, text
from pieglobalsfind.decoders.registry_snapshot import Snapshot, take
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.garbage import unsearched
from pieglobalsfind.model import Absent, Evidence, Object, Placement, RankTable, Region, Segment
from pieglobalsfind.target import Target

ADDRESSES = 1 << 64
TORN = "the registry was being changed at this moment; what it says of ranks and copies may be half of that change"

_NO_STACK = Absent("the runtime does not say where its stack is")
_NO_HEAP = Absent("the runtime does not say where its heap is")
_NO_RANGE = Absent("it has no address range of its own")


def decode(target: Target) -> Optional[RankTable]:
    """The rank table of the target's registry; raises `RegistryError` if there is one that can't be believed."""
    with unsearched():
        snapshot = take(target)
        if snapshot is None:
            return None
        check(snapshot.records)
        return _table(target, snapshot)


def _rank_table(target: Target, snapshot: Snapshot) -> Optional[layout.Table]:
    """Where the records of the ranks are; None if the registry is not what it was a moment ago."""
    header = snapshot.records.header
    try:
        _, tables = layout.parse_header(target.read(header.mapping_address, layout.LEAST_HEADER_SIZE), snapshot.order)
    except RanklensError:
        return None
    table = tables[layout.TABLES.index(layout.Rank)]
    good = table.count == len(snapshot.records.ranks) and table.stride >= layout.record_size(layout.Rank)
    return table if good else None


def _steady(
    target: Target, records: list[layout.Rank], table: layout.Table, order: str
) -> tuple[list[layout.Rank], set[int]]:
    """The records with those that changed meanwhile read again until they stand still, and the ranks that never did."""
    try:
        again = layout.parse_records(
            layout.Rank, target.read(table.address, table.count * table.stride), table.stride, order
        )
    except RanklensError:
        return records, set()
    restless = set()
    for index, (old, new) in enumerate(zip(records, again)):
        if moment_of(old) != moment_of(new):
            size = layout.known_size(layout.Rank, table.stride)
            still = _stands_still(target, new, table.address + index * table.stride, size, order)
            again[index] = still or new
            if still is None:
                restless.add(new.rank)
    return again, restless


def _stands_still(target: Target, first: layout.Rank, address: int, size: int, order: str) -> Optional[layout.Rank]:
    """The record once two readings in a row agree, None if they never do."""
    last = first
    for _ in range(MOST_TRIES):
        (now,) = layout.parse_records(layout.Rank, target.read(address, size), size, order)
        if moment_of(now) == moment_of(last):
            return now
        last = now
    return None


def _table(target: Target, snapshot: Snapshot) -> RankTable:
    records, header = snapshot.records, snapshot.records.header
    calls = tuple(text(one.name) or "an unnamed call" for one in records.calls)
    registers = tuple(
        model.RegisterRule(one.dwarf_register, one.rule == layout.REGISTER_AT_OFFSET, one.offset)
        for one in records.context_registers
    )
    keeper = kept.keeper_of(target, records, registers, snapshot.order)
    evidence = Evidence(kept.TIER if keeper else "registry", snapshot.source)
    ranks, warning = _ranks(target, snapshot, evidence, calls), ""
    if keeper is not None:
        ranks, warning = kept.as_now(target, keeper, ranks)
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
        evidence=evidence,
        entry_function=header.entry_function,
        entry_function_size=header.entry_function_size,
        event_function=header.event_function,
        constructor_heap=heap,
        constructor_blocks=tuple((one.address, one.size) for one in records.blocks),
        warnings=(*((TORN,) if snapshot.torn else ()), *((warning,) if warning else ())),
        calls=calls,
        byte_order=snapshot.order,
    )


def _objects(records: Records) -> tuple[Object, ...]:
    segments = [Segment(one.offset, one.memory_size, one.file_size, one.protection & 7) for one in records.segments]
    return tuple(
        Object(
            index=index,
            path=path_text(records.strings[one.path : one.path + 4096]),
            build_id=one.build_id[: one.build_id_size],
            base=one.base,
            load_bias=one.load_bias,
            span=one.span,
            segments=tuple(segments[one.first_segment : one.first_segment + one.segment_count]),
            privatized=bool(one.flags & layout.OBJECT_PRIVATIZED),
            is_program=bool(one.flags & layout.OBJECT_PROGRAM),
            dynamic=one.dynamic,
            tls_module_id=one.tls_module_id,
            tls_size=one.tls_size,
            tls_align=one.tls_align,
            tls_offset=one.tls_offset,
        )
        for index, one in enumerate(records.objects)
    )


def _ranks(target: Target, snapshot: Snapshot, evidence: Evidence, calls: tuple[str, ...]) -> tuple[model.Rank, ...]:
    placements = _placements(snapshot.records)
    found, restless = snapshot.records.ranks, set[int]()
    table = _rank_table(target, snapshot)
    if table is not None and target.is_live:
        found, restless = _steady(target, found, table, snapshot.order)
    return tuple(
        _rank(one, placements.get(one.rank, ()), calls, evidence, one.rank in restless, record)
        for one, record in sorted(zip(found, _addresses(table, len(found))))
    )


def _addresses(table: Optional[layout.Table], count: int) -> Iterable[int]:
    """Where the records are; 0 for all if that is not known."""
    if table is None:
        return (0,) * count
    return range(table.address, table.address + count * table.stride, table.stride)


def _rank(
    one: layout.Rank,
    placements: tuple[Placement, ...],
    calls: tuple[str, ...],
    evidence: Evidence,
    restless: bool,
    record: int,
) -> model.Rank:
    state = model.STATES[one.state]
    gone = state == model.MIGRATED_OUT
    return model.Rank(
        one.rank,
        state,
        one.processing_element,
        one.kernel_thread,
        SWITCHING if restless else context_of(one),
        _region(one.stack_start, one.stack_size, gone, _NO_STACK),
        _region(one.heap_start, one.heap_size, gone, _NO_HEAP),
        one.heap_used if one.heap_size and not gone else _NO_HEAP,
        _region(one.range_start, one.range_size, False, _NO_RANGE),
        waiting_of(one, calls),
        one.switches,
        () if gone else placements,
        evidence,
        one.address_space,
        record,
        -1 if one.process == layout.NONE else one.process,
        one.moves,
    )


def _region(start: int, size: int, gone: bool, none: Absent) -> Union[Region, Absent]:
    if gone:
        return GONE
    return Region(start, size) if size else none


def _placements(records: Records) -> dict[int, tuple[Placement, ...]]:
    """Every rank's placements, the special before the general: the first that matches wins."""
    found: dict[int, list[Placement]] = defaultdict(list)
    users = Counter(moved.storage for moved in records.redirections)
    for moved in records.redirections:
        shared = users[moved.storage] > 1
        found[moved.rank].append(
            model.Redirect(moved.object, moved.original, moved.size, moved.storage, moved.got_slot, shared)
        )
    extents = [(one.base, one.span) for one in records.objects]
    for copy in records.copies:
        base, span = extents[copy.object]
        found[copy.rank].append(model.Rebase(copy.object, base, span, copy.base))
    _add_heaps(records, found)
    for block in records.tls_blocks:
        whose = None if block.object == layout.NONE else block.object
        pointer = block.kind == layout.TLS_THREAD_POINTER
        found[block.rank].append(model.TlsBlock(whose, block.address, block.size, pointer, block.level))
    for root in records.roots:
        name = text(records.strings[root.type_name : root.type_name + 4096])
        found[root.rank].append(model.Root(root.object, name, root.address))
    for one in records.ranks:
        if one.address_space:
            found[one.rank].append(model.Alias(0, ADDRESSES, one.address_space))
    return {rank: tuple(placements) for rank, placements in found.items()}


def _add_heaps(records: Records, found: dict[int, list[Placement]]) -> None:
    """What constructors allocated, for ranks whose heap began as a replay of it (not with exact rewriting)."""
    start, size = records.header.constructor_heap, records.header.constructor_heap_size
    if size and records.blocks:
        for one in records.ranks:
            if one.heap_size >= size:
                found[one.rank].append(model.Rebase(None, start, size, one.heap_start))
