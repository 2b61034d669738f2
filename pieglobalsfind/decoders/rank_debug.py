"""Ranks by the debug ABI: what a runtime publishes in its registry (rank_debug.h), as a `RankTable`.

Takes a target; gives None if it has no registry. Every record is checked before it is used; [live] fields of a running
process are read twice, and a rank that was being switched meanwhile has no known context.
"""

from __future__ import annotations

import gc
import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.decoders.registry_check import check
from pieglobalsfind.decoders.registry_layout import Records, text
from pieglobalsfind.decoders.registry_snapshot import Snapshot, take
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Evidence, Object, Placement, RankTable, Region, Segment
from pieglobalsfind.target import Target

TORN = "the registry was being changed at this moment; what it says of ranks and copies may be half of that change"

_NO_STACK = Absent("the runtime does not say where its stack is")
_NO_HEAP = Absent("the runtime does not say where its heap is")
_NO_RANGE = Absent("it has no address range of its own")
_GONE = Absent("it has migrated to another process", "look for it in the job's other processes")
_NO_CONTEXT = {
    model.STARTING: Absent("it has not begun to run"),
    model.RUNNING: Absent("it is running", "its registers are its kernel thread's"),
    model.MIGRATED_OUT: _GONE,
    model.EXITED: Absent("it has ended"),
}
_UNSAVED = Absent("the runtime has not saved its registers")
_SWITCHING = Absent("it was being switched while it was read", "try again")


def decode(target: Target) -> Optional[RankTable]:
    """The rank table of the target's registry; raises `RegistryError` if there is one that can't be believed."""
    with _without_collection():
        snapshot = take(target)
        if snapshot is None:
            return None
        check(snapshot.records)
        switching = _switched_meanwhile(target, snapshot.records) if target.is_live else frozenset()
        return _table(snapshot, switching)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Nothing here is garbage, but looking for some doubles the time: 0.15 s against 0.08 s for 10,000 ranks."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _switched_meanwhile(target: Target, records: Records) -> frozenset[int]:
    """Ranks whose state and context may be of different moments: they are switched by plain stores, without a lock."""
    snapshot = take_ranks(target, records)
    return frozenset(
        old.rank
        for old, new in zip(records.ranks, snapshot)
        if (old.state, old.context, old.switches) != (new.state, new.context, new.switches)
    )


def take_ranks(target: Target, records: Records) -> list[layout.Rank]:
    """The ranks' records once more; what was read before if they can't be had."""
    header = records.header
    try:
        order = "<" if struct.unpack("<Q", target.read(header.mapping_address, 8))[0] == layout.MAGIC else ">"
        _, tables = layout.parse_header(target.read(header.mapping_address, layout.HEADER_SIZE), order)
        table = tables[layout.TABLES.index(layout.Rank)]
        if table.count != len(records.ranks) or table.stride < layout.record_size(layout.Rank):
            return records.ranks
        return layout.parse_records(
            layout.Rank, target.read(table.address, table.count * table.stride), table.stride, order
        )
    except RanklensError:
        return records.ranks


def _table(snapshot: Snapshot, switching: frozenset[int]) -> RankTable:
    records, header = snapshot.records, snapshot.records.header
    evidence = Evidence("registry", snapshot.source)
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
        ranks=_ranks(records, evidence, switching),
        context_layout=tuple(
            model.RegisterRule(one.dwarf_register, one.rule == layout.REGISTER_AT_OFFSET, one.offset)
            for one in records.context_registers
        ),
        evidence=evidence,
        entry_function=header.entry_function,
        entry_function_size=header.entry_function_size,
        event_function=header.event_function,
        constructor_heap=heap,
        constructor_blocks=tuple((one.address, one.size) for one in records.blocks),
        warnings=(TORN,) if snapshot.torn else (),
    )


def _objects(records: Records) -> tuple[Object, ...]:
    segments = [Segment(one.offset, one.memory_size, one.file_size, one.protection & 7) for one in records.segments]
    return tuple(
        Object(
            index=index,
            path=text(records.strings[one.path : one.path + 4096]),
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


def _ranks(records: Records, evidence: Evidence, switching: frozenset[int]) -> tuple[model.Rank, ...]:
    placements = _placements(records)
    calls = [text(one.name) or "an unnamed call" for one in records.calls]
    return tuple(
        _rank(one, placements.get(one.rank, ()), calls, evidence, one.rank in switching)
        for one in sorted(records.ranks)
    )


def _rank(
    one: layout.Rank, placements: tuple[Placement, ...], calls: list[str], evidence: Evidence, switching: bool
) -> model.Rank:
    state = model.STATES[one.state]
    gone = state == model.MIGRATED_OUT
    context = _NO_CONTEXT.get(state) or (_SWITCHING if switching else one.context or _UNSAVED)
    waiting = None
    if one.call:
        waiting = model.Waiting(calls[one.call], one.wait_peer, one.wait_tag, one.wait_communicator)
    return model.Rank(
        one.rank,
        state,
        one.processing_element,
        one.kernel_thread,
        context,
        _region(one.stack_start, one.stack_size, gone, _NO_STACK),
        _region(one.heap_start, one.heap_size, gone, _NO_HEAP),
        one.heap_used if one.heap_size and not gone else _NO_HEAP,
        _region(one.range_start, one.range_size, False, _NO_RANGE),
        waiting,
        one.switches,
        () if gone else placements,
        evidence,
        one.address_space,
    )


def _region(start: int, size: int, gone: bool, none: Absent) -> Union[Region, Absent]:
    if gone:
        return _GONE
    return Region(start, size) if size else none


def _placements(records: Records) -> dict[int, tuple[Placement, ...]]:
    """Every rank's placements, the special before the general: the first that matches wins."""
    found: dict[int, list[Placement]] = defaultdict(list)
    for moved in records.redirections:
        found[moved.rank].append(
            model.Redirect(moved.object, moved.original, moved.size, moved.storage, moved.got_slot)
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
        if one.address_space and one.range_size:
            found[one.rank].append(model.Alias(one.range_start, one.range_size, one.address_space))
    return {rank: tuple(placements) for rank, placements in found.items()}


def _add_heaps(records: Records, found: dict[int, list[Placement]]) -> None:
    """What constructors allocated, for ranks whose heap began as a replay of it (not with exact rewriting)."""
    start, size = records.header.constructor_heap, records.header.constructor_heap_size
    if size and records.blocks:
        for one in records.ranks:
            if one.heap_size >= size:
                found[one.rank].append(model.Rebase(None, start, size, one.heap_start))
