"""A search of memory for the threads of stock AMPI, where no table of the runtime leads to them.

Takes a target, its maps and what the words of a thread may be; gives what has the form of a thread, in the
order of allocation: the search may end as soon as every rank has been found. Pages that were never touched
are not read; there is no limit on the size of a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pieglobalsfind.decoders.ampi.loader import Loader
from pieglobalsfind.decoders.ampi.thread_form import Form, Signature
from pieglobalsfind.target import MemoryMapping, Target, pieces

MAIN_HEAP = "[heap]"  # proc(5); a core file does not name it
AROUND_PROGRAM = 1 << 40  # bytes in which the kernel places the heap, and nothing that is mapped


def signatures(target: Target, maps: Sequence[MemoryMapping], form: Form) -> Iterator[list[Signature]]:
    """Yield what each piece of memory has, the oldest memory first."""
    for mapping in in_order(maps, form.loader):
        for start, data in pieces(target, mapping.start, mapping.end, form.size - 8):
            yield list(form.within(data, start))


def in_order(maps: Sequence[MemoryMapping], loader: Loader) -> list[MemoryMapping]:
    """Memory that an allocator may have, as it was allocated: the heap after the program first, then what was mapped.

    Linux extends the heap upwards and maps downwards.
    """
    space, program = loader.space, loader.elf.base
    mappings = [mapping for mapping in maps if _is_heap(mapping) and not space.start <= mapping.start < space.end]
    heap = [mapping for mapping in mappings if program <= mapping.start < program + AROUND_PROGRAM]
    return [*heap, *(mapping for mapping in reversed(mappings) if mapping not in heap)]


def _is_heap(mapping: MemoryMapping) -> bool:
    return mapping.path in ("", MAIN_HEAP) and mapping.readable and mapping.writable and not mapping.shared


def ranks_here(maps: Sequence[MemoryMapping], loader: Loader) -> set[int]:
    """The ranks whose stacks are mapped; one that is migrating away may be among them."""
    space = loader.space
    begins = {}
    for mapping in maps:
        if mapping.writable and space.start <= mapping.start < space.end:
            begins.update(dict.fromkeys(_ranks_in(mapping, loader)))
    return set(begins)


def _ranks_in(mapping: MemoryMapping, loader: Loader) -> Iterator[int]:
    """The ranks whose shares begin in a mapping: adjacent ones may be one mapping."""
    space = loader.space
    first, last = space.rank_at(mapping.start), space.rank_at(min(mapping.end, space.end) - 1)
    first = space.count if first is None else first
    for number in range(first, (space.count - 1 if last is None else last) + 1):
        if mapping.start <= space.begin(number) < mapping.end:
            yield number
