"""User-level threads of stock AMPI by their form: no offset of Charm++'s thread structure is known beforehand.

Takes a target and its loader; gives for each rank its thread, or why none can be believed. A structure begins with a
pointer to a token that points back to it; where that lies before the context is the same for all threads of a build,
so it is discovered, and a freed structure, whose first words the allocator has overwritten, is no thread.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.ampi_loader import Loader, word
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import PC, RSP, Absent, Region
from pieglobalsfind.saved_context import FCONTEXT_WITH_GUARD
from pieglobalsfind.target import MemoryMapping, Target, parts

LARGEST_AREA = 1 << 28  # bytes of one mapping that are searched for threads
LAYOUT = FCONTEXT_WITH_GUARD  # Charm++ has a jump_fcontext of its own
SAVED_PC, SAVED_SIZE = (next(one.offset for one in LAYOUT if one.dwarf_register == number) for number in (PC, RSP))
REACH = 0x200  # a thread structure begins at most so far before its context
TOKEN_SIZE = 0x100
ARENA_SIZE = 0x100  # bytes of isomalloc's record that are searched for the rank's share
NO_THREAD = Absent("no thread of AMPI validates as its own")
SEVERAL = Absent("several threads of AMPI claim its stack", "look again when no rank migrates")


@dataclass(frozen=True)
class Thread:
    """A thread: where its structure begins, its saved context, its stack; `words` are the structure's own.

    `is_saved`: its context has a return address into the loader, as all that are not running have.
    """

    address: int
    context: int
    is_saved: bool
    stack: Region
    words: tuple[int, ...]

    @property
    def context_at(self) -> int:
        """Where the pointer to the saved context is: behind the structure's own words."""
        return self.address + 8 * len(self.words)


@dataclass(frozen=True)
class Signature:
    """{context, entry, end of stack, flags, size} at `address`; not yet known to be a thread."""

    address: int
    context: int
    stack: Region


def find_threads(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader
) -> Optional[dict[int, Union[Thread, Absent]]]:
    """By rank, its thread, or why none is believed; None if there are threads but their layout does not validate."""
    found = list(_signatures(target, maps, loader))
    living = alive(target, found)
    if living is None:
        return None if any(_has_saved(target, loader, one) for one in found) else {}
    threads: dict[int, Union[Thread, Absent]] = {}
    for words, one in living:
        number = loader.space.rank_at(one.stack.start)
        if number is None:
            continue
        start = one.address - 8 * len(words)
        thread = Thread(start, one.context, _has_saved(target, loader, one), one.stack, words)
        threads[number] = SEVERAL if number in threads else thread
    return threads


Living = tuple[tuple[int, ...], Signature]  # the words from the structure's start to the context, and what follows


def alive(target: Target, found: Sequence[Signature]) -> Optional[list[Living]]:
    """Those whose structures are in use; None if no token points back to any."""
    backs = {one.address: set(_backs(target, one)) for one in found}
    counted = Counter(back for one in backs.values() for back in one)
    if not counted:
        return None
    (before, at), _ = counted.most_common(1)[0]
    return [
        (struct.unpack(f"<{before // 8}Q", target.read(one.address - before, before)), one)
        for one in found
        if (before, at) in backs[one.address]
    ]


def _signatures(target: Target, maps: Sequence[MemoryMapping], loader: Loader) -> Iterator[Signature]:
    space = loader.space
    for one in maps:
        heap = one.path in ("", "[heap]") and one.readable and one.writable
        if heap and one.end - one.start <= LARGEST_AREA and not space.start <= one.start < space.end:
            for found in _signatures_in(target, one, loader.entry):
                number = space.rank_at(found.stack.start)
                if number is not None and space.begin(number) == found.stack.start:
                    yield found


def _signatures_in(target: Target, mapping: MemoryMapping, entry: int) -> Iterator[Signature]:
    pattern = struct.pack("<Q", entry).rstrip(b"\0")  # without zeros: a search for them is ten times as slow
    for start, data in parts(target, mapping.start, mapping.end):
        at = -1
        while (at := data.find(pattern, at + 1)) >= 0:
            if at >= 8 and at % 8 == 0 and at + 32 <= len(data):
                context, function, end, _, size = struct.unpack_from("<QQQQQ", data, at - 8)
                if function == entry and 0 < size < end and end - size <= context <= end - SAVED_SIZE:
                    yield Signature(start + at - 8, context, Region(end - size, size))


def _backs(target: Target, one: Signature) -> Iterator[tuple[int, int]]:
    """(bytes before the context, offset in the token) where a structure may begin whose token points back to it."""
    for before in range(8, REACH, 8):
        start = one.address - before
        try:
            token = target.read(word(target, start), TOKEN_SIZE)
        except MemoryUnreadable:
            continue
        at = token.find(struct.pack("<Q", start))
        if at >= 0 and at % 8 == 0:
            yield before, at


def _has_saved(target: Target, loader: Loader, one: Signature) -> bool:
    """Whether a return address into the loader is saved: all switches, and the first start, are calls in its text."""
    try:
        return loader.has_code(word(target, one.context + SAVED_PC))
    except MemoryUnreadable:
        return False


def used_end(target: Target, loader: Loader, number: int, thread: Thread) -> Union[int, Absent]:
    """Where the used part of the rank's share ends, from isomalloc's own record, which the thread points to."""
    share = loader.space.begin(number), loader.space.begin(number + 1)
    found = {used for begin, end, used in records(target, thread.words, thread.stack) if (begin, end) == share}
    return found.pop() if len(found) == 1 else Absent("isomalloc's record of its share does not validate")


def records(target: Target, words: Sequence[int], stack: Region) -> Iterator[tuple[int, int, int]]:
    """What a thread's words point to that has the form of isomalloc's record: {begin, end, end of the used part}.

    The stack is what a share begins with.
    """
    pattern = struct.pack("<Q", stack.start)
    for pointer in words:
        try:
            record = target.read(pointer, ARENA_SIZE)
        except MemoryUnreadable:
            continue
        at = -1
        while (at := record.find(pattern, at + 1)) >= 0:
            if at % 8 == 0 and at + 24 <= len(record):
                begin, end, used = struct.unpack_from("<QQQ", record, at)
                if stack.end <= used <= end and used % 4096 == 0:
                    yield begin, end, used
