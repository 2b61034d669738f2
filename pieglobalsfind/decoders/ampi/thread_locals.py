"""Where AMPI's ranks have their thread-local variables: below a thread pointer of their own, or their kernel thread's.

Takes copies that were found; adds blocks. With -tlsglobals each rank has a thread pointer, below which the loader's
static offsets hold for every object. Without it a rank uses the block of the kernel thread that runs it: one for all
ranks of a processing element, but where a copy is loaded by the system's loader, which gives each copy its own block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Optional

from pieglobalsfind.decoders import libc_threads, link_maps
from pieglobalsfind.decoders.ampi.images import AmpiImages, rank_pointer
from pieglobalsfind.decoders.ampi.runtime_variables import Loader
from pieglobalsfind.decoders.ampi.threads import AmpiThread
from pieglobalsfind.decoders.libc_threads import Described
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Object, Placement, Rebase, TlsBlock
from pieglobalsfind.target import MemoryMapping, Target, read_or_none

OF_RANK, OF_THREAD = 0, 1  # levels of blocks
WORD = 8


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
    blocks = _Blocks(target, loader, described, entries, _kernel_threads(target, maps, loader, described, entries))
    placements = {
        rank: (*held, *blocks.of_rank(images.objects, held, threads.get(rank)))
        for rank, held in images.placements.items()
    }
    return replace(images, placements=placements)


def _entries(target: Target, loader: Loader) -> dict[int, int]:
    """The entries of all the system loader's lists, by what was added to the object's addresses."""
    try:
        listed = list(link_maps.entries(target, loader.elf.dynamic.get(link_maps.DT_DEBUG, 0)))
    except MemoryUnreadable:
        return {}
    return {bias: entry for entry, bias in reversed(listed)}  # of several with one bias the first


def _kernel_threads(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, described: Described, entries: Mapping[int, int]
) -> Mapping[int, int]:
    """By processing element, the thread pointer of the kernel thread that runs its ranks, as far as it is known."""
    blocks = libc_threads.control_blocks(target, maps, described, loader.elf.header.processor)
    if len(loader.currents) == 1:
        first = min((thread.tid for thread in target.threads()), default=0)  # the process's first thread runs them
        pointers = [block.address for block in blocks if block.tid == first]
        return {loader.currents[0][0]: pointers[0]} if len(pointers) == 1 else {}
    if loader.own_current is None or loader.elf.load_bias not in entries:
        return {}
    # In SMP builds each kernel thread keeps in a thread-local variable where its element's current thread is named.
    elements = {address: element for element, address in loader.currents}
    offset = libc_threads.static_offset(target, described, entries[loader.elf.load_bias])
    block_of: dict[int, int] = {}
    for block in blocks:
        data = read_or_none(target, block.address - offset + loader.own_current, WORD)
        element = elements.get(int.from_bytes(data or b"", "little"))
        if element is not None:
            block_of[element] = block.address
    return block_of


class _Blocks:
    """Finds the blocks of one rank after another."""

    def __init__(
        self,
        target: Target,
        loader: Loader,
        described: Described,
        entries: Mapping[int, int],
        kernel_threads: Mapping[int, int],
    ) -> None:
        self._target, self._loader, self._described = target, loader, described
        self._entries, self._kernel_threads = entries, kernel_threads

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
            return
        pointer = self._kernel_thread_of(thread)
        if pointer is not None:
            block = pointer - offset if offset else self._dynamic(pointer, entry)
            if block:
                yield TlsBlock(elf_object.index, block, elf_object.tls_size, False, OF_RANK if is_own else OF_THREAD)

    def _kernel_thread_of(self, thread: Optional[AmpiThread]) -> Optional[int]:
        """The thread pointer of the kernel thread that runs a rank."""
        if len(self._loader.currents) == 1:
            return self._kernel_threads.get(self._loader.currents[0][0])
        return self._kernel_threads.get(thread.element) if thread is not None and thread.element is not None else None

    def _dynamic(self, pointer: int, entry: int) -> int:
        processor = self._loader.elf.header.processor
        return libc_threads.block_of(self._target, self._described, processor, pointer, entry)
