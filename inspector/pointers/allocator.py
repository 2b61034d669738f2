"""Whose allocator the program's calls of malloc lead to: the rank's, or the C library's, which is one for all ranks.

Takes a `Job`; reads the words of the originals through which they call it, as their loader has bound them. It tells
what is ranks' own, too: whatever else is mapped may be the C library's heap.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress

from pieglobalsfind.elf.file import DT_STRTAB, DT_SYMTAB, SYMBOL_SIZE, ElfFile, open_elf
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Object, Rank, Rebase, Redirect, Region, TlsBlock

from ..job.job import Job

NAMES = frozenset((b"malloc", b"calloc", b"realloc", b"aligned_alloc", b"memalign", b"posix_memalign"))
LONGEST = max(map(len, NAMES)) + 1
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
            with open_elf(path) as elf:
                places = [elf_object.load_bias + slot for slot in slots(elf)]
            return any(_is_in_libc(job, job.target.read(place, 8)) for place in places)
    return False


def _is_in_libc(job: Job, word: bytes) -> bool:
    mapping = job.translator.mapping(int.from_bytes(word, "little"))
    return mapping is not None and LIBC.match(mapping.path.rpartition("/")[2]) is not None


def slots(elf: ElfFile) -> Iterator[int]:
    """The vaddrs of words that the loader binds to an allocating function."""
    table, strings = elf.dynamic_value(DT_SYMTAB), elf.dynamic_value(DT_STRTAB)
    if table is None or strings is None:
        return
    kinds = elf.header.processor.relocations
    for relocation in elf.relocations():
        if relocation.type in (kinds.absolute, kinds.glob_dat, kinds.jump_slot) and relocation.symbol:
            (name,) = struct.unpack(elf.header.order + "I", elf.at(table + SYMBOL_SIZE * relocation.symbol, 4))
            if elf.at(strings + name, LONGEST).partition(b"\0")[0] in NAMES:
                yield relocation.offset


def ranges_of_ranks(job: Job) -> Iterator[tuple[int, int]]:
    """[start, end) of what is some rank's own."""
    for rank in job.present:
        yield from _ranges_of(rank)


def _ranges_of(rank: Rank) -> Iterator[tuple[int, int]]:
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
