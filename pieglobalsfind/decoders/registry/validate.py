"""Whether the records of a registry make sense: numbers in range, names there, images that do not overlap.

Takes records as they were read; raises `RegistryError` with the first thing that is wrong. It corrects nothing.
"""

from __future__ import annotations

from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import ObjectRecord, RankRecord, Records
from pieglobalsfind.errors import RegistryError
from pieglobalsfind.model import MIGRATED_OUT, STATES

TOP = 1 << 64
LARGEST_CONTEXT = 1 << 16  # bytes from a context to a saved register; vector registers included
MOST_REGISTERS = 256
MOST_DWARF_REGISTER = 1 << 16

Extent = tuple[int, int, str, int]  # start, end, what, whose number


def check(records: Records) -> None:
    """Raise `RegistryError` unless every record can be used as it is."""
    for number, record in enumerate(records.objects):
        _check_object(number, record, records)
    _check_ranks(records)
    _check_parts(records, {rank.rank for rank in records.ranks})
    _check_layout(records)
    _check_disjoint(
        [(record.base, record.base + record.span, "object", number) for number, record in enumerate(records.objects)]
    )
    _check_images(records)


def _wrong(what: str) -> RegistryError:
    return RegistryError(f"the registry is damaged, {what}", "the program may have overwritten it")


def _check_object(number: int, record: ObjectRecord, records: Records) -> None:
    if not 0 < record.span <= TOP - record.base:
        raise _wrong(f"object {number} has {record.span} bytes at {record.base:#x}")
    if record.path >= len(records.strings):
        raise _wrong(f"the path of object {number} is string {record.path}")
    if record.build_id_size > len(record.build_id):
        raise _wrong(f"object {number} has a build-id of {record.build_id_size} bytes")
    if record.first_segment + record.segment_count > len(records.segments):
        raise _wrong(f"object {number} has segments outside the table")
    for segment in records.segments[record.first_segment : record.first_segment + record.segment_count]:
        if segment.offset + segment.memory_size > record.span or segment.file_size > segment.memory_size:
            raise _wrong(f"a segment of object {number} does not lie within it")


def _check_ranks(records: Records) -> None:
    """Every rank's record makes sense, alone."""
    numbers: set[int] = set()
    states, calls = len(STATES), max(len(records.calls), 1)
    for rank in records.ranks:
        if not 0 <= rank.rank < records.header.rank_count:
            raise _wrong(f"it has a rank {rank.rank} in a job of {records.header.rank_count}")
        if rank.state >= states:
            raise _wrong(f"rank {rank.rank} is in state {rank.state}")
        if rank.call >= calls:
            raise _wrong(f"rank {rank.rank} waits in call {rank.call}")
        if (
            rank.stack_start + rank.stack_size > TOP
            or rank.heap_start + rank.heap_size > TOP
            or rank.range_start + rank.range_size > TOP
        ):
            raise _wrong(f"the memory of rank {rank.rank} ends after the last address")
        if rank.range_size and not _within_range(rank):
            raise _wrong(f"the stack or heap of rank {rank.rank} leaves its address range")
        numbers.add(rank.rank)
    if len(numbers) != len(records.ranks):
        raise _wrong("a rank has two records")


def _within_range(rank: RankRecord) -> bool:
    start, end = rank.range_start, rank.range_start + rank.range_size
    parts = ((rank.stack_start, rank.stack_size), (rank.heap_start, rank.heap_size))
    return all(not size or start <= begin <= end - size for begin, size in parts)


def _check_parts(records: Records, ranks: set[int]) -> None:
    objects, spans = len(records.objects), [record.span for record in records.objects]
    for rank, number, base in records.copies:
        if rank not in ranks or number >= objects:
            raise _wrong(f"it has a copy of object {number} for rank {rank}")
        if base + spans[number] > TOP:
            raise _wrong(f"a copy of rank {rank} ends after the last address")
    for block in records.tls_blocks:
        if block.rank not in ranks or (block.object >= objects and block.object != layout.NONE):
            raise _wrong(f"it has thread-local storage of object {block.object} for rank {block.rank}")
        if block.kind not in (layout.TLS_THREAD_POINTER, layout.TLS_BLOCK) or block.address + block.size > TOP:
            raise _wrong(f"thread-local storage of rank {block.rank} is of kind {block.kind}")
    for moved in records.redirections:
        if moved.rank not in ranks or moved.object >= objects or moved.size > TOP - max(moved.original, moved.storage):
            raise _wrong(f"it has a redirection in object {moved.object} for rank {moved.rank}")
    for root in records.roots:
        if root.rank not in ranks or root.object >= objects or root.type_name >= len(records.strings):
            raise _wrong(f"it has a struct of globals in object {root.object} for rank {root.rank}")
    for kept in records.kept:
        if kept.rank not in ranks:
            raise _wrong(f"it has external state of rank {kept.rank}, for which it has no record")


def _check_layout(records: Records) -> None:
    if len(records.context_registers) > MOST_REGISTERS:
        raise _wrong(f"contexts hold {len(records.context_registers)} registers")
    for register in records.context_registers:
        is_known = register.rule in (layout.REGISTER_AT_OFFSET, layout.REGISTER_IS_OFFSET)
        if not is_known or abs(register.offset) > LARGEST_CONTEXT or register.dwarf_register > MOST_DWARF_REGISTER:
            raise _wrong(
                f"contexts hold register {register.dwarf_register} by rule {register.rule} at {register.offset}"
            )
    start, size = records.header.constructor_heap, records.header.constructor_heap_size
    if start + size > TOP:
        raise _wrong("the constructors' heap ends after the last address")
    for block in records.blocks:
        if not start <= block.address <= start + size - block.size:
            raise _wrong(f"a constructor's block at {block.address:#x} does not lie in their heap")


def _check_images(records: Records) -> None:
    """Raise `RegistryError` if stacks, heaps or copies overlap, of ranks that share the process's addresses."""
    gone = STATES.index(MIGRATED_OUT)
    here = [rank for rank in records.ranks if rank.state != gone and not rank.address_space]
    numbers = {rank.rank for rank in here}
    spans = [record.span for record in records.objects]
    extents = [(rank.stack_start, rank.stack_start + rank.stack_size, "the stack of rank", rank.rank) for rank in here]
    extents += [(rank.heap_start, rank.heap_start + rank.heap_size, "the heap of rank", rank.rank) for rank in here]
    extents += [
        (base, base + spans[number], "a copy of rank", rank) for rank, number, base in records.copies if rank in numbers
    ]
    _check_disjoint(extents)


def _check_disjoint(extents: list[Extent]) -> None:
    """Neighbours by address must not overlap; empty extents lie nowhere."""
    ordered = sorted(extent for extent in extents if extent[0] < extent[1])
    for last, following in zip(ordered, ordered[1:]):
        if following[0] < last[1]:
            raise _wrong(f"{last[2]} {last[3]} and {following[2]} {following[3]} overlap at {following[0]:#x}")
