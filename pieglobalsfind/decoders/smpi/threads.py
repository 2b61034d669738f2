"""Kernel threads of a process, by their control blocks in memory, and the actor that each of them runs.

Takes a target without stopping it; gives the thread pointer of each thread, and from there the word in which SimGrid
keeps the thread's current context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.libc_threads import (
    MOST_MODULES,
    ControlBlock,
    Described,
    control_blocks,
    descriptions,
    module_of,
    thread_block,
)
from pieglobalsfind.decoders.smpi.copies import entries
from pieglobalsfind.decoders.smpi.library import SimgridLibrary
from pieglobalsfind.elf.file import DT_SYMTAB, SYMBOL_SIZE
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import MemoryMapping, Target, word_at

CURRENT = "_ZN7simgrid6kernel7context7Context16current_context_E"


@dataclass(frozen=True)
class SmpiThread:
    """A kernel thread; `pointer` is its control block's, `current` the address of SimGrid's word in it (0: none)."""

    tid: int
    pointer: int
    stack: MemoryMapping
    current: int
    context: int


def find_threads(
    target: Target, maps: Sequence[MemoryMapping], library: SimgridLibrary, stacks: frozenset[int]
) -> tuple[list[SmpiThread], Optional[Described]]:
    """The threads, and how libc describes them; `stacks` are addresses in mappings that are no thread's."""
    fields = descriptions(target, maps)
    if fields is None:
        return [], None
    place = _place(target, maps, library, fields)
    blocks = control_blocks(target, maps, fields, library.elf.header.processor, stacks)
    return [_thread(target, fields, place, block) for block in blocks], fields


def _thread(
    target: Target, fields: Described, place: Optional[tuple[int, int]], control_block: ControlBlock
) -> SmpiThread:
    block = thread_block(target, fields, control_block.address, place[0]) if place is not None else 0
    current = block + place[1] if block and place is not None else 0
    try:
        context = word_at(target, current) if current else 0
    except MemoryUnreadable:
        current = context = 0
    return SmpiThread(control_block.tid, control_block.address, control_block.mapping, current, context)


def _place(
    target: Target, maps: Sequence[MemoryMapping], library: SimgridLibrary, fields: Described
) -> Optional[tuple[int, int]]:
    """The library's TLS module, and where in its block the current context is."""
    symbol = library.symbol(CURRENT)
    module = _module(target, maps, library, fields) if symbol else 0
    return (module, symbol - library.elf.load_bias) if 0 < module <= MOST_MODULES else None


def _module(target: Target, maps: Sequence[MemoryMapping], library: SimgridLibrary, fields: Described) -> int:
    """By a relocation; a library that uses descriptors (TLSDESC, AArch64's default) has none, and its entry tells."""
    try:
        return word_at(target, _module_slot(target, library.elf))
    except MemoryUnreadable:
        bias = library.elf.load_bias
        entry = next((entry for entry, loaded_at, _ in entries(target, maps) if loaded_at == bias), 0)
        return module_of(target, fields, entry) if entry else 0


def _module_slot(target: Target, elf: LoadedElf) -> int:
    """Where the loader has put the number of the library's own TLS module; raises `MemoryUnreadable` without one."""
    module = elf.header.processor.relocations.tls_module
    for offset, kind, symbol, _ in elf.relocations():
        if kind == module and (symbol == 0 or _is_defined(target, elf, symbol)):
            return elf.load_bias + offset
    raise MemoryUnreadable(elf.base, 8, "the library has no thread-local variables of its own")


def _is_defined(target: Target, elf: LoadedElf, symbol: int) -> bool:
    section = target.read(elf.table(DT_SYMTAB) + SYMBOL_SIZE * symbol + 6, 2)  # st_shndx
    return any(section)
