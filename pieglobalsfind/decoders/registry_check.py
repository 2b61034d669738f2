"""Whether the records of a registry make sense: numbers in range, names there, images that do not overlap.

Takes records as they were read; raises `RegistryError` with the first thing that is wrong. It corrects nothing.
"""

from __future__ import annotations

from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.decoders.registry_layout import Object, Rank, Records
from pieglobalsfind.errors import RegistryError
from pieglobalsfind.model import MIGRATED_OUT, STATES

TOP = 1 << 64
LARGEST_CONTEXT = 1 << 16  # bytes from a context to a saved register; vector registers included
MOST_REGISTERS = 256
MOST_DWARF_REGISTER = 1 << 16

Extent = tuple[int, int, str, int]  # start, end, what, whose number


def check(records: Records) -> None:
    """Raise `RegistryError` unless every record can be used as it is."""
    for number, found in enumerate(records.objects):
        _check_object(number, found, records)
    known = _check_ranks(records)
    _check_parts(records, known)
    _check_layout(records)
    _check_disjoint([(one.base, one.base + one.span, "object", i) for i, one in enumerate(records.objects)])
    _check_disjoint(_images(records))


def _wrong(what: str) -> RegistryError:
    return RegistryError(f"the registry is damaged, {what}", "the program may have overwritten it")


def _check_object(number: int, found: Object, records: Records) -> None:
    if not 0 < found.span <= TOP - found.base:
        raise _wrong(f"object {number} has {found.span} bytes at {found.base:#x}")
    if found.path >= len(records.strings):
        raise _wrong(f"the path of object {number} is string {found.path}")
    if found.build_id_size > len(found.build_id):
        raise _wrong(f"object {number} has a build-id of {found.build_id_size} bytes")
    if found.first_segment + found.segment_count > len(records.segments):
        raise _wrong(f"object {number} has segments that are not there")
    for one in records.segments[found.first_segment : found.first_segment + found.segment_count]:
        if one.offset + one.memory_size > found.span or one.file_size > one.memory_size:
            raise _wrong(f"a segment of object {number} does not lie within it")


def _check_ranks(records: Records) -> set[int]:
    """The ranks that the registry has."""
    known: set[int] = set()
    states, calls = len(STATES), max(len(records.calls), 1)
    for one in records.ranks:
        if not 0 <= one.rank < records.header.rank_count:
            raise _wrong(f"it has a rank {one.rank} in a job of {records.header.rank_count}")
        if one.state >= states:
            raise _wrong(f"rank {one.rank} is in state {one.state}")
        if one.call >= calls:
            raise _wrong(f"rank {one.rank} waits in call {one.call}")
        if (
            one.stack_start + one.stack_size > TOP
            or one.heap_start + one.heap_size > TOP
            or one.range_start + one.range_size > TOP
        ):
            raise _wrong(f"the memory of rank {one.rank} ends behind the last address")
        if one.range_size and not _within_range(one):
            raise _wrong(f"the stack or heap of rank {one.rank} leaves its address range")
        known.add(one.rank)
    if len(known) != len(records.ranks):
        raise _wrong("a rank is there twice")
    return known


def _within_range(one: Rank) -> bool:
    end = one.range_start + one.range_size
    stack = not one.stack_size or one.range_start <= one.stack_start <= end - one.stack_size
    return stack and (not one.heap_size or one.range_start <= one.heap_start <= end - one.heap_size)


def _check_parts(records: Records, known: set[int]) -> None:
    objects = len(records.objects)
    for one in records.copies:
        if one.rank not in known or one.object >= objects:
            raise _wrong(f"it has a copy of object {one.object} for rank {one.rank}")
        if one.base + records.objects[one.object].span > TOP:
            raise _wrong(f"a copy of rank {one.rank} ends behind the last address")
    for block in records.tls_blocks:
        if block.rank not in known or (block.object >= objects and block.object != layout.NONE):
            raise _wrong(f"it has thread-local storage of object {block.object} for rank {block.rank}")
        if block.kind not in (layout.TLS_THREAD_POINTER, layout.TLS_BLOCK) or block.address + block.size > TOP:
            raise _wrong(f"thread-local storage of rank {block.rank} is of kind {block.kind}")
    for moved in records.redirections:
        if moved.rank not in known or moved.object >= objects or moved.size > TOP - max(moved.original, moved.storage):
            raise _wrong(f"it has a redirection in object {moved.object} for rank {moved.rank}")
    for root in records.roots:
        if root.rank not in known or root.object >= objects or root.type_name >= len(records.strings):
            raise _wrong(f"it has a struct of globals in object {root.object} for rank {root.rank}")
    for kept in records.kept:
        if kept.rank not in known:
            raise _wrong(f"it says what the runtime keeps of rank {kept.rank}, which it has not")


def _check_layout(records: Records) -> None:
    if len(records.context_registers) > MOST_REGISTERS:
        raise _wrong(f"contexts hold {len(records.context_registers)} registers")
    for one in records.context_registers:
        known = one.rule in (layout.REGISTER_AT_OFFSET, layout.REGISTER_IS_OFFSET)
        if not known or abs(one.offset) > LARGEST_CONTEXT or one.dwarf_register > MOST_DWARF_REGISTER:
            raise _wrong(f"contexts hold register {one.dwarf_register} by rule {one.rule} at {one.offset}")
    start, size = records.header.constructor_heap, records.header.constructor_heap_size
    if start + size > TOP:
        raise _wrong("the constructors' heap ends behind the last address")
    for block in records.blocks:
        if not start <= block.address <= start + size - block.size:
            raise _wrong(f"a constructor's block at {block.address:#x} does not lie in their heap")


def _images(records: Records) -> list[Extent]:
    """Stacks, heaps and copies of the ranks that share the process's addresses and are here."""
    gone = STATES.index(MIGRATED_OUT)
    here = [one for one in records.ranks if one.state != gone and not one.address_space]
    numbers = {one.rank for one in here}
    spans = [one.span for one in records.objects]
    found = [(one.stack_start, one.stack_start + one.stack_size, "the stack of rank", one.rank) for one in here]
    found += [(one.heap_start, one.heap_start + one.heap_size, "the heap of rank", one.rank) for one in here]
    found += [
        (base, base + spans[number], "a copy of rank", rank) for rank, number, base in records.copies if rank in numbers
    ]
    return found


def _check_disjoint(extents: list[Extent]) -> None:
    """Neighbours by address must not overlap; empty extents lie nowhere."""
    ordered = sorted(one for one in extents if one[0] < one[1])
    for last, one in zip(ordered, ordered[1:]):
        if one[0] < last[1]:
            raise _wrong(f"{last[2]} {last[3]} and {one[2]} {one[3]} overlap at {one[0]:#x}")
