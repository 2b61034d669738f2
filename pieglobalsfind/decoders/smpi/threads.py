"""Kernel threads of a process, by their control blocks in memory, and the actor that each of them runs.

Takes a target without stopping it; gives the thread pointer of each thread, and from there the word in which SimGrid
keeps the thread's current context. A control block (x86-64: tcbhead_t) begins with its own address and has it again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.pip.threads import ENTRY, ENTRY_VALUE, TID, VECTOR, descriptions
from pieglobalsfind.decoders.smpi.library import Library
from pieglobalsfind.decoders.smpi.words import WORD, word_at
from pieglobalsfind.elf.file import DT_RELA, DT_RELASZ, DT_SYMTAB, SYMBOL_SIZE
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import MemoryMapping, Target, pieces

CURRENT = "_ZN7simgrid6kernel7context7Context16current_context_E"
R_X86_64_DTPMOD64 = 16  # ELF Handling For Thread-Local Storage: the number of a module
RELOCATION = struct.Struct("<QIIq")  # r_offset, type, symbol, r_addend
LARGEST_TABLE = 1 << 26  # bytes of relocations
MOST_MODULES = 1 << 16
ALIGNMENT = 64  # of a control block
SELF_AT = 16
SEARCHED = 1 << 12  # bytes at the end of a mapping: glibc puts the block at the end of a thread's stack
SMALL = 1 << 18  # bytes of a mapping that is searched whole: the first thread's block is where the loader had space


@dataclass(frozen=True)
class Thread:
    """A kernel thread; `pointer` is its thread pointer, `current` the address of SimGrid's word in it (0: none)."""

    tid: int
    pointer: int
    stack: MemoryMapping
    current: int
    context: int


def find_threads(
    target: Target, maps: Sequence[MemoryMapping], library: Library, stacks: frozenset[int]
) -> tuple[list[Thread], Optional[Mapping[str, tuple[int, int]]]]:
    """The threads, and how libc describes them; `stacks` are addresses in mappings that are no thread's."""
    known = descriptions(target, maps)
    if known is None:
        return [], None
    place = _place(target, library)
    return [_thread(target, known, place, *one) for one in _blocks(target, maps, known, stacks)], known


def _blocks(
    target: Target, maps: Sequence[MemoryMapping], known: Mapping[str, tuple[int, int]], stacks: frozenset[int]
) -> Iterator[tuple[MemoryMapping, int, int]]:
    """The mapping, the address and the thread's number of each control block."""
    for one in maps:
        if one.readable and one.writable and not one.path and one.start not in stacks:
            begin = one.start if one.end - one.start <= SMALL else one.end - SEARCHED
            for start, data in pieces(target, begin, one.end):
                for address in _own_addresses(start, data):
                    tid = _number(target, address + known[TID][1])
                    if tid > 0 and _is_block(target, address):
                        yield one, address, tid


def _own_addresses(start: int, data: bytes) -> Iterator[int]:
    """Where a word is its own address, at places where a control block may begin."""
    first = -start % ALIGNMENT
    words = memoryview(data)[first : len(data) - (len(data) - first) % WORD].cast("Q")
    for at in range(0, len(words), ALIGNMENT // WORD):
        if words[at] == start + first + WORD * at:
            yield words[at]


def _is_block(target: Target, address: int) -> bool:
    """Read in small, so that a snapshot holds it."""
    try:
        return word_at(target, address) == word_at(target, address + SELF_AT) == address
    except MemoryUnreadable:
        return False


def _number(target: Target, address: int) -> int:
    """0 if it can't be read; the kernel clears it as a thread ends."""
    try:
        return int.from_bytes(target.read(address, 4), "little", signed=True)
    except MemoryUnreadable:
        return 0


def _thread(
    target: Target,
    known: Mapping[str, tuple[int, int]],
    place: Optional[tuple[int, int]],
    mapping: MemoryMapping,
    pointer: int,
    tid: int,
) -> Thread:
    block = thread_block(target, known, pointer, place[0]) if place is not None else 0
    current = block + place[1] if block and place is not None else 0
    try:
        context = word_at(target, current) if current else 0
    except MemoryUnreadable:
        current = context = 0
    return Thread(tid, pointer, mapping, current, context)


def thread_block(target: Target, known: Mapping[str, tuple[int, int]], pointer: int, module: int) -> int:
    """Where a thread has the thread-local variables of a module, 0 if it has not needed them yet."""
    try:
        vector = word_at(target, pointer + known[VECTOR][1])
        at = vector + known[ENTRY][1] + known[ENTRY][0] // 8 * module + known[ENTRY_VALUE][1]
        block = word_at(target, at)
        target.read(block, 1)
        return block
    except MemoryUnreadable:
        return 0


def _place(target: Target, library: Library) -> Optional[tuple[int, int]]:
    """The library's TLS module, and where in its block the current context is."""
    symbol = library.symbol(CURRENT)
    try:
        module = word_at(target, _module_slot(target, library.elf)) if symbol else 0
    except MemoryUnreadable:
        return None
    return (module, symbol - library.elf.load_bias) if 0 < module <= MOST_MODULES else None


def _module_slot(target: Target, elf: LoadedElf) -> int:
    """Where the loader has put the number of the library's own TLS module; raises `MemoryUnreadable` without one."""
    size = elf.dynamic.get(DT_RELASZ, 0)
    table = target.read(elf.table(DT_RELA), size - size % RELOCATION.size if size <= LARGEST_TABLE else 0)
    for offset, kind, symbol, _ in RELOCATION.iter_unpack(table):
        if kind == R_X86_64_DTPMOD64 and (symbol == 0 or _is_defined(target, elf, symbol)):
            return elf.load_bias + int(offset)
    raise MemoryUnreadable(elf.base, 8, "the library has no thread-local variables of its own")


def _is_defined(target: Target, elf: LoadedElf, symbol: int) -> bool:
    section = target.read(elf.table(DT_SYMTAB) + SYMBOL_SIZE * symbol + 6, 2)  # st_shndx
    return any(section)
