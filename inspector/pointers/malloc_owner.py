"""Whose allocator the program's calls of malloc lead to: the rank's, or the C library's, which is one for all ranks.

Takes a `Job`; reads the words of the originals through which they call it, as their loader has bound them. It tells
what is ranks' own, too: whatever else is mapped may be the C library's heap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Object, Rank, Rebase, Redirect, Region, TlsBlock

from ..job.job import Job
from ..program.program_file import ProgramFile

NAMES = frozenset(("malloc", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign"))
LIBC = re.compile(r"libc(?:\.so|-[0-9])")  # glibc's file, to 2.33 with its version


def is_libc(job: Job) -> bool:
    """Whether objects that were copied for ranks call glibc's own malloc."""
    copied = {
        placement.object
        for rank in job.present[:1]
        for placement in rank.placements
        if isinstance(placement, Rebase) and placement.copy != placement.original
    }
    return any(leads_to_libc(job, elf_object) for elf_object in job.privatized if elf_object.index in copied)


def leads_to_libc(job: Job, elf_object: Object) -> bool:
    """Of one object."""
    path = job.file(elf_object)
    with suppress(RanklensError):
        if isinstance(path, str):
            with ProgramFile(path) as file:
                places = [elf_object.load_bias + slot for slot in slots(file)]
            return any(_is_in_libc(job, job.target.read(place, 8)) for place in places)
    return False


def _is_in_libc(job: Job, word: bytes) -> bool:
    mapping = job.translator.mapping(int.from_bytes(word, "little"))
    return mapping is not None and LIBC.match(mapping.path.rpartition("/")[2]) is not None


def slots(file: ProgramFile) -> Iterator[int]:
    """The vaddrs of words that the loader binds to an allocating function."""
    kinds = file.processor.relocations
    for relocation in file.relocations():
        symbol = file.symbol(relocation)
        if symbol is None or symbol.name not in NAMES:
            continue
        if relocation.type in (kinds.absolute, kinds.glob_dat, kinds.jump_slot):
            yield relocation.offset


def ranges_of_ranks(job: Job) -> Iterator[tuple[int, int]]:
    """[start, end) of what is some rank's own."""
    for rank in job.present:
        yield from ranges_of(rank)


def ranges_of(rank: Rank) -> Iterator[tuple[int, int]]:
    """[start, end) of what is one rank's own."""
    for region in (rank.stack, rank.heap):
        if isinstance(region, Region):
            yield region.start, region.end
    for part in rank.placements:
        if isinstance(part, Rebase):
            yield part.copy, part.copy + part.size
        elif isinstance(part, TlsBlock):
            yield part.address - part.size * part.is_thread_pointer, part.address + part.size
        elif isinstance(part, Redirect):
            yield part.storage, part.storage + part.size
