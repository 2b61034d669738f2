"""The loader of a stock AMPI program without `.symtab`: what it exports still, and what its threads say of themselves.

Takes a target; gives a `Loader`, or None if too little validates. How many ranks a job has is in no exported variable:
it follows from the shares of addresses that the threads name, and is believed if one number alone fits all of them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Optional

from pieglobalsfind.decoders.ampi.runtime_variables import (
    EXPORTED,
    LARGEST_TLS,
    MOST_RANKS,
    PROCESS,
    PROCESSES,
    Loader,
    Space,
    number_at,
)
from pieglobalsfind.decoders.ampi.threads import Living, living_threads, records
from pieglobalsfind.elf.file import PT_TLS
from pieglobalsfind.elf.loaded import LoadedElf, exporters
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.target import MemoryMapping, Target, file_starts, word_at

REGION = "IsoRegion"  # {start, end} of isomalloc's range
TLS = "CmiTLSGetDescription"  # only that of -tlsglobals
PIE = "_Z14pieglobalsfindPv"  # only the loader of -pieglobals has it
PT_GNU_EH_FRAME = 0x6474E550
NAMING = "fcontext"  # threads of the other form name no entry, by which they are known here
SLOTS = tuple(1 << bits for bits in range(12, 31))  # isomalloc's unit is a power of two; the largest that fits all
MOST_GUESSES = 1 << 12
FRAME_TABLE = b"\x01\x1b\x03\x3b"  # version, pcrel sdata4, udata4, datarel sdata4: what every linker writes
MOST_FRAMES = 1 << 20


def find_stripped(target: Target, maps: Sequence[MemoryMapping]) -> Optional[Loader]:
    """The loader, with the range and the threads' entry that its threads agree on."""
    paths = {mapping.start: mapping.path for mapping in file_starts(maps)}
    for elf, _ in exporters(target.read, file_starts(maps), EXPORTED):
        with suppress(ObjectFileError, MemoryUnreadable):
            if elf.header.processor.charm_context == NAMING:
                return _loader(target, maps, elf, paths[elf.base])
    return None


def _loader(target: Target, maps: Sequence[MemoryMapping], elf: LoadedElf, path: str) -> Optional[Loader]:
    region = elf.symbol(REGION)
    start, end = (word_at(target, region), word_at(target, region + 8)) if region else (0, 0)
    process, processes = elf.symbol(PROCESS), elf.symbol(PROCESSES)
    loader = Loader(
        elf=elf,
        path=path,
        space=Space(start, end, 0, 0),
        entry=0,
        entry_size=0,
        currents=(),
        is_pie=elf.symbol(PIE) is not None,
        process_index=number_at(target, process) if process else 0,
        process_count=number_at(target, processes) if processes else 1,
        is_stripped=True,
    )
    threads = (living_threads(target, maps, loader) if 0 < start < end else None) or []
    if not threads:
        return None
    (entry, _), *_ = Counter(signature.entry for _, signature in threads).most_common()
    living = [thread for thread in threads if thread[1].entry == entry]
    space = _space(start, end, _shares(target, living, end))
    if space is None:
        return None
    has_blocks = elf.symbol(TLS) is not None
    tls = _tls(elf, living) if has_blocks else None
    if has_blocks and tls is None:
        return None
    return replace(loader, space=space, entry=entry, entry_size=_size(target, elf, entry), tls=tls)


def _shares(target: Target, living: Sequence[Living], end: int) -> set[tuple[int, int]]:
    """(begin, end) of each share that a thread's own record names."""
    shares: set[tuple[int, int]] = set()
    for words, signature in living:
        named = {(begin, last) for begin, last, _ in records(target, words, signature.stack) if last <= end}
        shares |= named if len(named) == 1 else set()
    return shares


def _space(start: int, end: int, shares: set[tuple[int, int]]) -> Optional[Space]:
    """The only division of the range in which all shares are some rank's; None if there is none, or several."""
    spaces: dict[int, Space] = {}
    for slot in SLOTS if shares else ():
        length = min((last - begin) // slot for begin, last in shares)
        whole = (end - start) // slot
        low, high = max(2, whole // (length + 1)), min(whole // max(1, length - 1) + 1, MOST_RANKS + 1)
        if any((begin - start) % slot or (last - start) % slot for begin, last in shares) or high - low > MOST_GUESSES:
            continue
        for count in range(low, high + 1):
            space = Space(start, end, slot, count - 1)
            if space.is_valid and all(_is_share(space, *share) for share in shares):
                spaces[space.count] = space
    return spaces.popitem()[1] if len(spaces) == 1 else None


def _is_share(space: Space, begin: int, end: int) -> bool:
    rank = space.rank_at(begin)
    return rank is not None and (space.begin(rank), space.begin(rank + 1)) == (begin, end)


def _tls(elf: LoadedElf, living: Sequence[Living]) -> Optional[tuple[int, int]]:
    """Size and alignment of a rank's block: as far after its stack as all threads alike have a pointer, if one is."""
    header = next((header for header in elf.program_headers if header.type == PT_TLS and header.align > 0), None)
    if header is None:
        return None
    sizes = [
        {size for size in (word - signature.stack.end for word in words) if header.memory_size <= size <= LARGEST_TLS}
        for words, signature in living
    ]
    alike = set.intersection(*sizes) if sizes else set()
    return (alike.pop(), header.align) if len(alike) == 1 else None


def _size(target: Target, elf: LoadedElf, function: int) -> int:
    """Bytes of a function, padding included, by where the next one with unwind information begins; 0 if unknown.

    LSB, "Exception Frame Header": a table of (start of a function, its description), sorted, relative to the header.
    """
    header = next((elf.load_bias + header.vaddr for header in elf.program_headers if header.type == PT_GNU_EH_FRAME), 0)
    try:
        if not header or target.read(header, 4) != FRAME_TABLE:
            return 0
        count = min(number_at(target, header + 8), MOST_FRAMES)
        table = array("i", target.read(header + 12, 8 * max(count, 0)))
    except MemoryUnreadable:
        return 0
    following = [header + start - function for start in table[::2] if header + start > function]
    return min(following, default=0) if function - header in table[::2] else 0
