"""The registers of a suspended user-level thread, by what its package has saved: fcontext, ucontext or jmp_buf.

Takes a target, the kind and the address of what was saved; gives registers, believed only if they make sense: a stack
pointer in writable memory, a pc in executable memory. It knows nothing of ranks, needs no thread of the target, and
neither writes nor calls. glibc alone; it does not show whether a context is stale.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Optional

from pieglobalsfind.elf.target_processor import processor_of_target
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, UsageError
from pieglobalsfind.machine.processor import Layout, Processor
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.target import MemoryMapping, Target, read_many

WORD = 8
_MASK = (1 << 64) - 1

Registers = dict[int, int]


KINDS = ("fcontext", "ucontext", "jmp_buf")

# The auxiliary vector (getauxval(3)): pairs of words on the first thread's stack, below the environment's texts.
AT_NULL, AT_PAGESZ, AT_RANDOM, HIGHEST_TYPE = 0, 6, 25, 64
MOST_PAIRS = 64
PAGE = 4096
TOP_OF_STACK = 1 << 22  # bytes that are searched for it
MOST_CANDIDATES = 1024  # words that may be the vector's AT_RANDOM
MOST_STACKS = 8  # mappings that may be the first thread's stack, where nothing tells which is


def registers(target: Target, kind: str, address: int) -> Registers:
    """DWARF register number -> value; raises `UsageError` for an unknown kind, `RanklensError` if it makes no sense."""
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of saved context", f"these are: {', '.join(KINDS)}")
    maps, processor = target.maps(), processor_of_target(target)
    why = ""
    valid: list[Registers] = []
    for layout in processor.contexts[kind]:
        values = _read(target, kind, address, layout)
        if kind == "jmp_buf":
            guard = pointer_guard(target, maps)
            values.update((number, processor.demangle(values[number], guard)) for number in processor.mangled)
        values[processor.pc] &= processor.code_mask
        values = processor.resumed(target.read, values)
        wrong = _wrong(maps, processor, address, values)
        why = why or wrong
        if not wrong:
            valid.append(values)
    if not valid:
        raise RanklensError(f"what lies at {address:#x} is not a {kind} of a suspended thread, {why}")
    return next((values for values in valid if is_return_address(target, processor, values[processor.pc])), valid[0])


def _read(target: Target, kind: str, address: int, layout: Layout) -> Registers:
    try:
        data = target.read(address, max(register_rule.offset for register_rule in layout) + WORD)
    except MemoryUnreadable as error:
        raise RanklensError(f"there is no {kind} at {address:#x}, {error.sentence}") from error
    return {
        register_rule.dwarf_register: struct.unpack_from("<Q", data, register_rule.offset)[0]
        if register_rule.saved
        else (address + register_rule.offset) & _MASK
        for register_rule in layout
    }


def _wrong(maps: Sequence[MemoryMapping], processor: Processor, address: int, values: Registers) -> str:
    """Why registers can't be those of a suspended thread; "" if they can."""
    pointer, pc = values[processor.stack_pointer], values[processor.pc]
    stack, code = mapping_at(maps, pointer), mapping_at(maps, pc)
    if address % WORD or pointer % WORD:
        return "it is not aligned"
    if stack is None or not (stack.readable and stack.writable):
        return f"its stack pointer {pointer:#x} is in no writable memory"
    if code is None or not code.executable:
        return f"its pc {pc:#x} is not in executable memory"
    return ""


def is_return_address(target: Target, processor: Processor, pc: int) -> bool:
    """Whether an instruction that may be a call ends before it."""
    try:
        before = target.read(pc - processor.longest_call, processor.longest_call)
    except MemoryUnreadable:
        return False
    return processor.is_call(before)


# ---- PTR_MANGLE ----


def pointer_guard(target: Target, maps: Sequence[MemoryMapping]) -> int:
    """The guard of PTR_MANGLE: the second word of the kernel's random bytes (AT_RANDOM).

    glibc takes it from there at start (elf/rtld.c, security_init), so no thread's registers are needed. Raises
    `RanklensError` if the auxiliary vector, or what it leads to, can't be read.
    """
    guard = guard_places(target, maps)
    if guard is not None:
        with suppress(MemoryUnreadable):
            return int.from_bytes(target.read(guard[1] + WORD, WORD), "little")
    raise RanklensError("the guard that mangles a jmp_buf can't be read", "the first thread's stack can't be read")


def guard_places(target: Target, maps: Sequence[MemoryMapping]) -> Optional[tuple[int, int]]:
    """Where the auxiliary vector says where the random bytes are, and where these are; None if it can't be found."""
    random_bytes = (_random_bytes(target, stack) for stack in _stacks(maps))
    return next((data for data in random_bytes if data is not None), None)


def _stacks(maps: Sequence[MemoryMapping]) -> Iterator[MemoryMapping]:
    """Where the first thread's stack may be, the likeliest first; core files don't name it."""
    named = [mapping for mapping in maps if mapping.path == "[stack]"]
    anonymous = [mapping for mapping in reversed(maps) if not mapping.path and mapping.readable and mapping.writable]
    yield from named or anonymous[:MOST_STACKS]


def _random_bytes(target: Target, stack: MemoryMapping) -> Optional[tuple[int, int]]:
    start = max(stack.start, stack.end - TOP_OF_STACK)
    data = _as_far_as_readable(target, start, stack.end)
    for at in islice(_aligned(data, struct.pack("<Q", AT_RANDOM)), MOST_CANDIDATES):
        if _is_in_vector(data, at):
            (random,) = struct.unpack_from("<Q", data, at + WORD)
            return (start + at, random) if start <= random <= stack.end - 16 else None
    return None


def _as_far_as_readable(target: Target, start: int, end: int) -> bytes:
    """Zeros in place of pages that can't be read: a snapshot has few of a stack."""
    try:
        return target.read(start, end - start)
    except MemoryUnreadable:
        pages = range(start, end, PAGE)
        pieces = read_many(target, [(page, min(PAGE, end - page)) for page in pages])
        return b"".join(data or bytes(min(PAGE, end - page)) for page, data in zip(pages, pieces))


def _aligned(data: bytes, pattern: bytes) -> Iterator[int]:
    """Where a pattern is, the last place first."""
    at = len(data)
    while (at := data.rfind(pattern, 0, at)) >= 0:
        if at % WORD == 0:
            yield at


def _is_in_vector(data: bytes, at: int) -> bool:
    after, before = tuple(_types(data, at, 16)), tuple(_types(data, at, -16))
    return AT_NULL in after and AT_PAGESZ in (*after, *before)


def _types(data: bytes, at: int, step: int) -> Iterator[int]:
    """The types of a vector's pairs, from one pair on in one direction, as far as they look like a vector's."""
    for place in range(at, at + step * MOST_PAIRS, step):
        if not 0 <= place <= len(data) - 16:
            return
        (entry_type,) = struct.unpack_from("<Q", data, place)
        if entry_type >= HIGHEST_TYPE:
            return
        yield entry_type
        if entry_type == AT_NULL:
            return
