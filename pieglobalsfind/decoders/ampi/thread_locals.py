"""Where AMPI's ranks have their thread-local variables: below a thread pointer of their own, or their kernel thread's.

Takes copies that were found; adds blocks. With -tlsglobals each rank has a thread pointer, below which the loader's
static offsets hold for every object. Without it a rank uses the block of the kernel thread that runs it: one for all
ranks, but where a copy is loaded by the system's loader, which gives each copy a block of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Optional

from pieglobalsfind.decoders import libc_threads
from pieglobalsfind.decoders.ampi.images import AmpiImages, rank_pointer
from pieglobalsfind.decoders.ampi.loader import Loader
from pieglobalsfind.decoders.ampi.threads import AmpiThread
from pieglobalsfind.decoders.libc_threads import Described
from pieglobalsfind.decoders.link_maps import DT_DEBUG, chain, link, namespaces
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Object, Placement, Rebase, TlsBlock
from pieglobalsfind.target import MemoryMapping, Target

OF_RANK, OF_THREAD = 0, 1  # levels of blocks


def with_thread_locals(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, threads: Mapping[int, AmpiThread], images: AmpiImages
) -> AmpiImages:
    """The images with blocks of thread-local variables, as far as they are known."""
    if not any(elf_object.tls_size for elf_object in images.objects):
        return images
    described = libc_threads.descriptions(target, maps)
    entries = _entries(target, loader)
    if described is None or not entries:
        return images
    blocks = _Blocks(target, loader, described, entries, _only_thread(target, maps, loader, described))
    found = {
        rank: (*held, *blocks.of_rank(images.objects, held, threads.get(rank)))
        for rank, held in images.placements.items()
    }
    return replace(images, placements=found)


def _entries(target: Target, loader: Loader) -> dict[int, int]:
    """The entries of all the system loader's lists, by what was added to the object's addresses."""
    found: dict[int, int] = {}
    try:
        for first in namespaces(target, loader.elf.dynamic.get(DT_DEBUG, 0)):
            for entry in chain(target, first):
                found.setdefault(link(target, entry).bias, entry)
    except MemoryUnreadable:
        return {}
    return found


def _only_thread(target: Target, maps: Sequence[MemoryMapping], loader: Loader, described: Described) -> Optional[int]:
    """The thread pointer of the one kernel thread that runs ranks; None in SMP builds, where any of several may."""
    if len(loader.currents) != 1:
        return None
    first = min((thread.tid for thread in target.threads()), default=0)  # the process's first thread runs them
    blocks = libc_threads.control_blocks(target, maps, described, loader.elf.header.processor)
    pointers = [block.address for block in blocks if block.tid == first]
    return pointers[0] if len(pointers) == 1 else None


class _Blocks:
    """Finds the blocks of one rank after another."""

    def __init__(
        self, target: Target, loader: Loader, described: Described, entries: Mapping[int, int], thread: Optional[int]
    ) -> None:
        self._target, self._loader, self._described = target, loader, described
        self._entries, self._thread = entries, thread

    def of_rank(
        self, objects: Sequence[Object], held: Sequence[Placement], thread: Optional[AmpiThread]
    ) -> Iterator[TlsBlock]:
        """The blocks of the objects that the rank has copies of."""
        for part in held:
            elf_object = objects[part.object] if isinstance(part, Rebase) and part.object is not None else None
            if isinstance(part, Rebase) and elf_object is not None and elf_object.tls_size:
                own = self._entries.get(elf_object.load_bias + part.copy - part.original)
                entry = own or self._entries.get(elf_object.load_bias)
                if entry is not None:
                    yield from self._of_object(elf_object, entry, own is not None, thread)

    def _of_object(
        self, elf_object: Object, entry: int, is_own: bool, thread: Optional[AmpiThread]
    ) -> Iterator[TlsBlock]:
        """By the rank's thread pointer, if it has one and the object a static offset; else by the kernel thread's."""
        is_above = self._loader.elf.header.processor.tls_is_above
        offset = 0 if is_above else libc_threads.static_offset(self._target, self._described, entry)
        if self._loader.tls is not None and offset:
            pointer = rank_pointer(thread, *self._loader.tls) if thread is not None else None
            if pointer is not None:
                yield TlsBlock(elf_object.index, pointer - offset, elf_object.tls_size, False, OF_RANK)
        elif self._thread is not None:
            block = self._thread - offset if offset else self._dynamic(self._thread, entry)
            if block:
                yield TlsBlock(elf_object.index, block, elf_object.tls_size, False, OF_RANK if is_own else OF_THREAD)

    def _dynamic(self, pointer: int, entry: int) -> int:
        processor = self._loader.elf.header.processor
        return libc_threads.block_of(self._target, self._described, processor, pointer, entry)
