"""glibc's kernel threads from outside: their control blocks, and where they have an object's thread-local variables.

Takes a target; libc itself describes its structures, for libthread_db's sake. A control block (x86-64: tcbhead_t is
{tcb, dtv, self, ...}) begins with its own address and has it again. It lies at the end of its thread's stack. Since
glibc 2.42 guard pages no longer separate the mappings of stacks: libc's own list has the others. Where blocks lie
above the thread pointer (AArch64), the structure below it has no word of itself: libc's lists alone lead to it. What
can't be read is absent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.loaded import LoadedElf, exporters
from pieglobalsfind.elf.named_symbols import symbols
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.target import MemoryMapping, Target, pieces, read_or_none, system_loaders, word_at, word_or_none

# What libc describes: {bits, elements, offset}, 32 bits each.
TID, VECTOR = "_thread_db_pthread_tid", "_thread_db_pthread_dtvp"
ENTRY, ENTRY_VALUE = "_thread_db_dtv_dtv", "_thread_db_dtv_t_pointer_val"
MODULE, STATIC_OFFSET = "_thread_db_link_map_l_tls_modid", "_thread_db_link_map_l_tls_offset"
SIZE = "_thread_db_sizeof_pthread"  # one number: the thread pointer follows the structure where blocks lie above it
DESCRIPTIONS = (TID, VECTOR, ENTRY, ENTRY_VALUE, MODULE)  # what has to be there
# What leads to libc's lists of threads: the heads, of those that it has made itself and of others, such as the first
# one, and the nodes in threads
GLOBAL = "_rtld_global"
HEADS = ("_thread_db_rtld_global__dl_stack_used", "_thread_db_rtld_global__dl_stack_user")
NODE, NEXT = "_thread_db_pthread_list", "_thread_db_list_t_next"
OF_LIST = (*HEADS, NODE, NEXT)
MOST_THREADS = 1 << 16
PAGE = 4096
Described = Mapping[str, tuple[int, int]]  # (bits, offset) by name
LARGEST_OFFSET = 1 << 16
LARGEST_STATIC = 1 << 30  # bytes from a thread pointer
MOST_MODULES = 1 << 16
WORD = 8
ALIGNMENT = 64  # of a control block
SEARCHED = 1 << 12  # bytes at the end of a mapping: glibc puts the block at the end of a thread's stack
SMALL = 1 << 18  # bytes of a mapping that is searched whole: the first thread's block is where the loader had space


@dataclass(frozen=True)
class ControlBlock:
    """A kernel thread's; `address` is its pthread_t, on x86-64 also its thread pointer; `mapping` is its memory."""

    tid: int
    address: int
    mapping: MemoryMapping


def descriptions(target: Target, maps: Sequence[MemoryMapping]) -> Optional[Described]:
    """The (bits, offset) of what libc describes; None if no libc describes all of it.

    Before glibc 2.34 libpthread did, and only in its `.symtab`, which is left to it for libthread_db's sake.
    """
    for mapping in maps:
        if mapping.offset == 0 and mapping.readable and ("/libc" in mapping.path or "/libpthread" in mapping.path):
            try:
                loaded = LoadedElf(target.read, mapping.start)
                places = {name: loaded.symbol(name) for name in DESCRIPTIONS}
                if None in places.values() and "/libpthread" in mapping.path:
                    places = _unexported(target, mapping.path, loaded)
                described = {name: _description(target, at or 0) for name, at in places.items()}
                for name in (STATIC_OFFSET, *OF_LIST) if described else ():
                    place = loaded.symbol(name)
                    if place is not None:
                        described[name] = _description(target, place)
                size = loaded.symbol(SIZE) if described else None
                if size is not None:
                    described[SIZE] = _number(target, size), 0
            except (ObjectFileError, MemoryUnreadable):
                continue
            if described and all(bits and offset < LARGEST_OFFSET for bits, offset in described.values()):
                return described
    return None


def _description(target: Target, address: int) -> tuple[int, int]:
    bits, _, offset = struct.unpack("<III", target.read(address, 12))
    return int(bits), int(offset)


def _unexported(target: Target, path: str, loaded: LoadedElf) -> dict[str, Optional[int]]:
    """Where they are by the file's `.symtab`, if it is the file that is loaded; raises `ObjectFileError`."""
    file = target.open_path(path)
    if file is None:
        return {}
    with ElfFile(file) as elf:
        places = symbols(elf, loaded.load_bias, DESCRIPTIONS) if elf.build_id == loaded.build_id else {}
    return {name: places[name][0] for name in DESCRIPTIONS} if len(places) == len(DESCRIPTIONS) else {}


def control_blocks(
    target: Target,
    maps: Sequence[MemoryMapping],
    described: Described,
    processor: Processor,
    stacks: frozenset[int] = frozenset(),
) -> list[ControlBlock]:
    """The control block of each kernel thread; `stacks` are the starts of mappings that hold none."""
    listed = listed_blocks(target, maps, described)
    addresses = dict.fromkeys((*(_searched(target, maps, stacks) if processor.self_at is not None else ()), *listed))
    blocks = []
    for address in addresses:
        tid = _number(target, address + described[TID][1])
        mapping = mapping_at(maps, address)
        if tid > 0 and mapping is not None and _is_block(target, processor, address, address in listed):
            blocks.append(ControlBlock(tid, address, mapping))
    return _apart(blocks)


def _searched(target: Target, maps: Sequence[MemoryMapping], stacks: frozenset[int]) -> Iterator[int]:
    """What may be a control block, where most are."""
    for mapping in maps:
        if mapping.readable and mapping.writable and not mapping.path and mapping.start not in stacks:
            begin = mapping.start if mapping.end - mapping.start <= SMALL else mapping.end - SEARCHED
            for start, data in pieces(target, begin, mapping.end):
                yield from _own_addresses(start, data)


def listed_blocks(target: Target, maps: Sequence[MemoryMapping], described: Described) -> tuple[int, ...]:
    """The threads in libc's lists; none where their description is not whole, or a list is being changed."""
    lists = _lists(target, maps) if all(name in described for name in OF_LIST) else 0
    lists_of_threads = (_of_list(target, described, lists + described[head][1]) for head in (HEADS if lists else ()))
    return tuple(address for addresses in lists_of_threads for address in addresses)


def _of_list(target: Target, described: Described, head: int) -> Iterator[int]:
    """The threads in one list, as far as it leads forth and back (list_t is {next, prev})."""
    node, next_at = head, described[NEXT][1]
    try:
        for _ in range(MOST_THREADS):
            before, node = node, word_at(target, node + next_at)
            if node == head or word_at(target, node + next_at + WORD) != before:
                return
            yield node - described[NODE][1]
    except MemoryUnreadable:
        return


def _lists(target: Target, maps: Sequence[MemoryMapping]) -> int:
    """Where the system loader keeps what the lists are in; 0 if it does not say so."""
    return next((place for _, place in exporters(target.read, system_loaders(maps), GLOBAL)), 0)


def _apart(blocks: Sequence[ControlBlock]) -> list[ControlBlock]:
    """In order of address; of a mapping that several share each has what is its own, up to the end of its page."""
    apart: list[ControlBlock] = []
    for control_block in sorted(blocks, key=lambda block: block.address):
        start = control_block.mapping.start
        if apart and start <= apart[-1].address:
            before = apart[-1]
            start = before.address // PAGE * PAGE + PAGE
            apart[-1] = replace(before, mapping=before.mapping._replace(end=start))
        apart.append(replace(control_block, mapping=control_block.mapping._replace(start=start)))
    return apart


def _own_addresses(start: int, data: bytes) -> Iterator[int]:
    """Where a word is its own address, at places where a control block may begin."""
    first = -start % ALIGNMENT
    words = memoryview(data)[first : len(data) - (len(data) - first) % WORD].cast("Q")
    begin = start + first
    places = range(begin, begin + WORD * len(words), ALIGNMENT)
    for address in sorted(set(words[:: ALIGNMENT // WORD]).intersection(places)):  # in C: stacks are large
        if words[(address - begin) // WORD] == address:
            yield address


def _is_block(target: Target, processor: Processor, address: int, is_listed: bool) -> bool:
    """Whether both words are there, if the processor's blocks have them; read in small, so that a snapshot holds them.

    Of a thread that libc lists the second will do: AMPI's TLSglobals exchange the first one (%fs:0).
    """
    if processor.self_at is None:
        return is_listed
    first, own = (word_or_none(target, address + at) for at in (0, processor.self_at))
    return own == address and first is not None and (first == address or is_listed)


def _number(target: Target, address: int) -> int:
    """A thread's number, 0 if it can't be read; the kernel clears it as a thread ends."""
    return int.from_bytes(read_or_none(target, address, 4) or b"", "little", signed=True)


def module_of(target: Target, described: Described, entry: int) -> int:
    """The number of the TLS module that the loader gave to the object with an entry in its list; 0 without one."""
    module = word_or_none(target, entry + described[MODULE][1]) or 0
    return module if module <= MOST_MODULES else 0


def thread_block(target: Target, described: Described, pointer: int, module: int) -> int:
    """Where the thread with a thread pointer has the variables of a TLS module; 0 if it has not needed them yet.

    By the thread's vector of blocks (ELF Handling For Thread-Local Storage, 3.3).
    """
    if not 0 < module <= MOST_MODULES:
        return 0
    try:
        vector = word_at(target, pointer + described[VECTOR][1])
        at = vector + described[ENTRY][1] + described[ENTRY][0] // 8 * module + described[ENTRY_VALUE][1]
        block = word_at(target, at)
        target.read(block, 1)
        return block
    except MemoryUnreadable:
        return 0


def block_of(target: Target, described: Described, processor: Processor, thread: int, entry: int) -> int:
    """Where a thread has the variables of the object with an entry in the loader's list; 0 if that is not known.

    By the vector, or, in variant I, by the place above the thread pointer that the loader gave the object: code that
    uses descriptors (TLSDESC) never fills the vector then. `thread` is the control block's address.
    """
    if processor.tls_is_above and described.get(SIZE, (0, 0))[0]:
        offset = static_offset(target, described, entry)
        if offset:
            return thread + described[SIZE][0] + offset
    return thread_block(target, described, thread, module_of(target, described, entry))


def static_offset(target: Target, described: Described, entry: int) -> int:
    """How far from every thread pointer the object's variables begin; 0 if the loader gave them no such place.

    Below it (variant II) or above (I) (ELF Handling For Thread-Local Storage, 3.4); -1 and 0 mean that only the vector
    leads there.
    """
    if STATIC_OFFSET not in described:
        return 0
    offset = word_or_none(target, entry + described[STATIC_OFFSET][1]) or 0
    return offset if offset <= LARGEST_STATIC else 0
