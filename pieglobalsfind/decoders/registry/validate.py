"""Whether the records of a registry make sense: numbers in range, names there, images that do not overlap.

Takes records as they were read; raises `RegistryError` with the first thing that is wrong. It corrects nothing.
"""

from __future__ import annotations

from operator import add, le

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
    for number, object_record in enumerate(records.objects):
        _check_object(number, object_record, records)
    are_right = are_plainly_right(records)
    if not are_right:
        check_ranks(records)
    _check_parts(records, {rank.rank for rank in records.ranks})
    _check_layout(records)
    _check_disjoint(
        [
            (object_record.base, object_record.base + object_record.span, "object", i)
            for i, object_record in enumerate(records.objects)
        ]
    )
    if not are_right:
        check_images(records)


def are_plainly_right(records: Records) -> bool:
    """Whether `check_ranks` and `check_images` would find nothing, as nearly always: checked for whole columns at once.

    That takes less than half of their time. Where it is false (of ranks without a range of addresses, for instance),
    only they can tell.
    """
    spans = [object_record.span for object_record in records.objects]
    _, objects, bases = zip(*records.copies) if records.copies else ((), (), ())
    if not records.ranks or max(objects, default=-1) >= len(spans):
        return False
    column = dict(zip(RankRecord._fields, zip(*records.ranks)))
    stacks, heaps, ranges = (column["stack_start"], column["heap_start"], column["range_start"])
    stack_ends = list(map(add, stacks, column["stack_size"]))
    heap_ends = list(map(add, heaps, column["heap_size"]))
    range_ends = list(map(add, ranges, column["range_size"]))
    copy_ends = map(add, bases, map(spans.__getitem__, objects))
    return (
        min(column["rank"]) >= 0
        and max(column["rank"]) < records.header.rank_count
        and len(set(column["rank"])) == len(records.ranks)
        and max(column["state"]) < len(STATES)
        and STATES.index(MIGRATED_OUT) not in column["state"]
        and max(column["call"]) < max(len(records.calls), 1)
        and not any(column["address_space"])
        and max(range_ends) <= TOP
        and all(map(le, ranges, stacks))
        and all(map(le, stack_ends, range_ends))
        and all(map(le, ranges, heaps))
        and all(map(le, heap_ends, range_ends))
        and _are_apart([*stacks, *heaps, *bases], [*stack_ends, *heap_ends, *copy_ends])
    )


def _are_apart(starts: list[int], ends: list[int]) -> bool:
    """Whether no extents overlap: as many of them have ended as have begun before, wherever one begins."""
    return all(map(le, sorted(ends), sorted(starts)[1:]))


def _wrong(what: str) -> RegistryError:
    return RegistryError(f"the registry is damaged, {what}", "the program may have overwritten it")


def _check_object(number: int, object_record: ObjectRecord, records: Records) -> None:
    if not 0 < object_record.span <= TOP - object_record.base:
        raise _wrong(f"object {number} has {object_record.span} bytes at {object_record.base:#x}")
    if object_record.path >= len(records.strings):
        raise _wrong(f"the path of object {number} is string {object_record.path}")
    if object_record.build_id_size > len(object_record.build_id):
        raise _wrong(f"object {number} has a build-id of {object_record.build_id_size} bytes")
    if object_record.first_segment + object_record.segment_count > len(records.segments):
        raise _wrong(f"object {number} has segments outside the table")
    for segment in records.segments[
        object_record.first_segment : object_record.first_segment + object_record.segment_count
    ]:
        if segment.offset + segment.memory_size > object_record.span or segment.file_size > segment.memory_size:
            raise _wrong(f"a segment of object {number} does not lie within it")


def check_ranks(records: Records) -> None:
    """Raise `RegistryError` unless every rank's record makes sense, alone."""
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


def _within_range(rank_record: RankRecord) -> bool:
    end = rank_record.range_start + rank_record.range_size
    stack = (
        not rank_record.stack_size or rank_record.range_start <= rank_record.stack_start <= end - rank_record.stack_size
    )
    return stack and (
        not rank_record.heap_size or rank_record.range_start <= rank_record.heap_start <= end - rank_record.heap_size
    )


def _check_parts(records: Records, ranks: set[int]) -> None:
    objects, spans = len(records.objects), [object_record.span for object_record in records.objects]
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


def check_images(records: Records) -> None:
    """Raise `RegistryError` if stacks, heaps or copies overlap, of ranks that share the process's addresses."""
    gone = STATES.index(MIGRATED_OUT)
    here = [rank for rank in records.ranks if rank.state != gone and not rank.address_space]
    numbers = {rank_record.rank for rank_record in here}
    spans = [object_record.span for object_record in records.objects]
    extents = [
        (
            rank_record.stack_start,
            rank_record.stack_start + rank_record.stack_size,
            "the stack of rank",
            rank_record.rank,
        )
        for rank_record in here
    ]
    extents += [
        (rank_record.heap_start, rank_record.heap_start + rank_record.heap_size, "the heap of rank", rank_record.rank)
        for rank_record in here
    ]
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
