"""User-level threads of stock AMPI by their form: no offset of Charm++'s thread structure is known beforehand.

Takes a target and its loader; gives for each rank its thread, or why none can be believed. Charm++'s tables lead to
most threads, a search to others. A structure begins with a pointer to a token that points back to it. Its distance
from the context is the same for all threads of a build, so one thread tells it. A freed structure is not a thread: the
allocator has overwritten its first words.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional, Union

from pieglobalsfind.decoders.ampi.elements import placed_elements, words_of_elements
from pieglobalsfind.decoders.ampi.runtime_variables import Loader
from pieglobalsfind.decoders.ampi.thread_signature import Form, Signature, form_of
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Region
from pieglobalsfind.target import MemoryMapping, Target, pieces, read_many, read_or_none

__all__ = ["NO_THREAD", "SEVERAL", "AmpiThread", "find_threads", "living_threads", "records", "used_ends"]

REACH = 0x200  # a thread structure begins at most so far before its context
TOKEN_SIZE = 0x100
SAMPLE = 4  # elements by which the layout is discovered
MOST_LAYOUTS = 3  # that are tried
ARENA_SIZE = 0x100  # bytes of isomalloc's record that are searched for the rank's share
NO_THREAD = Absent("no thread of AMPI validates as its own")
NO_RECORD = Absent("isomalloc's record of its share does not validate")
SEVERAL = Absent("several threads of AMPI claim its stack", "look again when no rank migrates")
MAIN_HEAP = "[heap]"  # proc(5); a core file does not name it
AROUND_PROGRAM = 1 << 40  # bytes in which the kernel places the heap, and nothing that is mapped


@dataclass(frozen=True)
class AmpiThread:
    """A thread: where its structure begins, its saved context, its stack; `words` are the structure's own.

    `is_saved`: its context has a return address into the loader, as all that are not running have. `context_at` is
    where the pointer to the saved context is, 0 of a context that is a part of the structure. `element`: the processing
    element that it belongs to, None if Charm++'s tables do not lead to it.
    """

    address: int
    context: int
    is_saved: bool
    stack: Region
    words: tuple[int, ...]
    context_at: int
    element: Optional[int] = None


Living = tuple[tuple[int, ...], Signature]  # the words from the structure's start to the context, and what follows


class Layout(NamedTuple):
    """Of a build: bytes of a thread structure before the context, and where in the token it is named."""

    before: int
    token: int


def find_threads(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader
) -> Optional[dict[int, Union[AmpiThread, Absent]]]:
    """By rank, its thread, or why none is believed; None if there are threads but their layout does not validate."""
    placed = placed_elements(target, loader).values()
    living = living_threads(target, maps, loader, [words for _, words in placed])
    if living is None:
        return None
    # One of an element's words is where its thread begins.
    homes = {word: number for number, words in placed for word in words} if len(loader.currents) > 1 else {}
    threads: dict[int, Union[AmpiThread, Absent]] = {}
    form = form_of(loader)
    for words, signature in living:
        number = loader.space.rank_at(signature.stack.start)
        if number is None:
            continue
        start = signature.address - 8 * len(words)
        is_saved, context_at = _has_saved(target, form, signature), signature.address if form.context_moves else 0
        thread = AmpiThread(start, signature.context, is_saved, signature.stack, words, context_at, homes.get(start))
        threads[number] = SEVERAL if number in threads else thread
    return threads


def living_threads(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, elements: Optional[Sequence[Sequence[int]]] = None
) -> Optional[list[Living]]:
    """The threads of the ranks that are in the process; None if their layout does not validate.

    `elements`: words of the TCharm elements, if they have been read.
    """
    form = form_of(loader)
    words = words_of_elements(target, loader) if elements is None else elements
    return threads_of_elements(target, words, form) or _searched(target, maps, form)


def threads_of_elements(target: Target, elements: Sequence[Sequence[int]], form: Form) -> list[Living]:
    """The threads that TCharm elements point to; one that is being made or has just migrated may have none."""
    layouts = Counter(layout for words in elements[:SAMPLE] for layout in _layouts(target, words, form))
    for (offset, layout), _ in layouts.most_common(MOST_LAYOUTS):
        starts = [words[offset] for words in elements if offset < len(words)]
        living = _read_threads(target, starts, layout, form)
        if living:
            return living
    return []


def _layouts(target: Target, words: Sequence[int], form: Form) -> Iterator[tuple[int, Layout]]:
    """(which word of an element points to its thread, the thread's layout), as far as it validates."""
    structures = read_many(target, [(start, REACH + form.size) for start in words])
    for offset, (start, data) in enumerate(zip(words, structures)):
        for signature in form.within(data or b"", start):
            if 0 < signature.address - start < REACH:
                token = read_or_none(target, _first_word(data), TOKEN_SIZE)
                yield from ((offset, Layout(signature.address - start, at)) for at in _backs(token, start))


def _read_threads(target: Target, starts: Sequence[int], layout: Layout, form: Form) -> list[Living]:
    """The threads that begin at some places and validate, read together."""
    living: list[Living] = []
    structures = read_many(target, [(start, layout.before + form.size) for start in starts])
    tokens = read_many(target, [(_first_word(data) + layout.token, 8) for data in structures])
    for start, data, token in zip(starts, structures, tokens):
        signature = form.signature(data, layout.before, start) if data is not None else None
        if signature is not None and data is not None and token == struct.pack("<Q", start):
            living.append((struct.unpack_from(f"<{layout.before // 8}Q", data), signature))
    return living


def _first_word(data: Optional[bytes]) -> int:
    return int.from_bytes((data or b"")[:8], "little")


def _searched(target: Target, maps: Sequence[MemoryMapping], form: Form) -> Optional[list[Living]]:
    """The threads in memory, until each rank that is here has one."""
    wanted = ranks_here(maps, form.loader) if form.loader.entry else None
    if wanted is not None and not wanted:
        return []
    claimed: list[Signature] = []
    layouts: Counter[Layout] = Counter()
    living: list[Living] = []
    for more in signatures(target, maps, form):
        if more:
            claimed += more
            layouts.update(layout for signature in more for layout in _layouts_of(target, signature))
            living = _in_use(target, claimed, layouts.most_common(1)[0][0]) if layouts else []
            if wanted is not None and wanted <= {
                form.loader.space.rank_at(signature.stack.start) for _, signature in living
            }:
                break
    if not layouts and any(_has_saved(target, form, signature) for signature in claimed):
        return None
    return living


def _layouts_of(target: Target, signature: Signature) -> Iterator[Layout]:
    """The layouts by which a token points back to a structure."""
    starts = range(signature.address - REACH + 8, signature.address, 8)
    firsts = read_many(target, [(start, 8) for start in starts])
    tokens = read_many(target, [(_first_word(first), TOKEN_SIZE) for first in firsts])
    for start, token in zip(starts, tokens):
        yield from (Layout(signature.address - start, at) for at in _backs(token, start))


def _backs(token: Optional[bytes], start: int) -> Iterator[int]:
    """Where the token that a structure at `start` begins with points back to it."""
    at = (token or b"").find(struct.pack("<Q", start))
    if at >= 0 and at % 8 == 0:
        yield at


def _in_use(target: Target, claimed: Sequence[Signature], layout: Layout) -> list[Living]:
    """Those whose structures are in use."""
    starts = [signature.address - layout.before for signature in claimed]
    structures = read_many(target, [(start, layout.before) for start in starts])
    tokens = read_many(target, [(_first_word(data) + layout.token, 8) for data in structures])
    return [
        (struct.unpack(f"<{layout.before // 8}Q", data), signature)
        for signature, start, data, token in zip(claimed, starts, structures, tokens)
        if data is not None and token == struct.pack("<Q", start)
    ]


def _has_saved(target: Target, form: Form, signature: Signature) -> bool:
    """Whether a return address into the loader is saved: all switches, and the first start, are calls in its text."""
    try:
        return form.loader.has_code(form.saved_pc(target, signature))
    except MemoryUnreadable:
        return False


def used_ends(
    target: Target, loader: Loader, threads: Mapping[int, Union[AmpiThread, Absent]]
) -> dict[int, Union[int, Absent]]:
    """Where the used part of each rank's share ends, from isomalloc's own records, which the threads point to.

    The word that leads to the record is the same in all threads of a build.
    """
    believed = {number: thread for number, thread in threads.items() if isinstance(thread, AmpiThread)}
    ends: dict[int, Union[int, Absent]] = dict.fromkeys(threads, NO_RECORD)
    for number, thread in believed.items():
        share = loader.space.begin(number), loader.space.begin(number + 1)
        places = [at for at, pointer in enumerate(thread.words) if pointer and pointer % 8 == 0]
        arenas = read_many(target, [(thread.words[at], ARENA_SIZE) for at in places])
        leading = [at for at, record in zip(places, arenas) if _ends(record, thread.stack, share)]
        if len(leading) == 1:
            (at,) = leading
            break
    else:
        return ends
    arenas = read_many(target, [(thread.words[at], ARENA_SIZE) for thread in believed.values()])
    for (number, thread), record in zip(believed.items(), arenas):
        used = _ends(record, thread.stack, (loader.space.begin(number), loader.space.begin(number + 1)))
        if len(used) == 1:
            ends[number] = used.pop()
    return ends


def _ends(record: Optional[bytes], stack: Region, share: tuple[int, int]) -> set[int]:
    return {used for begin, end, used in _records_in(record, stack) if (begin, end) == share}


def records(target: Target, words: Sequence[int], stack: Region) -> Iterator[tuple[int, int, int]]:
    """What a thread's words point to that has the form of isomalloc's record: {begin, end, end of the used part}."""
    pointers = [pointer for pointer in words if pointer and pointer % 8 == 0]
    for record in read_many(target, [(pointer, ARENA_SIZE) for pointer in pointers]):
        yield from _records_in(record, stack)


def _records_in(record: Optional[bytes], stack: Region) -> Iterator[tuple[int, int, int]]:
    """The stack is what a share begins with."""
    pattern = struct.pack("<Q", stack.start)
    at = -1
    while record is not None and (at := record.find(pattern, at + 1)) >= 0:
        if at % 8 == 0 and at + 24 <= len(record):
            begin, end, used = struct.unpack_from("<QQQ", record, at)
            if stack.end <= used <= end and used % 4096 == 0:
                yield begin, end, used


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
