"""What is private to a rank of stock AMPI under each method: copies in linker namespaces or files, or a TLS block.

Takes a target, its loader and, where ranks have threads, those; gives objects and each rank's placements. Under
`-pieglobals` copies have ELF headers of their own and are found by `elf_scan`. Nothing here follows a damaged list far.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from pieglobalsfind.decoders import gnu_unique
from pieglobalsfind.decoders.ampi.runtime_variables import Loader
from pieglobalsfind.decoders.ampi.threads import AmpiThread
from pieglobalsfind.decoders.elf_scan import object_of
from pieglobalsfind.decoders.link_maps import DT_DEBUG, chain, entries, link, placed
from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Object, Placement, RankTable, Rebase, Region, TlsBlock
from pieglobalsfind.target import MemoryMapping, Target, file_starts, read_or_none, word_at

USER_SUFFIX = ".user.so"  # which ampicc gives the user's program beside its loader
USER_FILE = re.compile(r"\.user(\.\d+)?\.so$")  # or AMPI a rank's copy of it
OUTERMOST = 1 << 14  # bytes of a stack


@dataclass(frozen=True)
class AmpiImages:
    """`objects`, and by rank what it has of them. `warning`: what is not known of that, "" if all is."""

    method: str
    objects: tuple[Object, ...]
    placements: Mapping[int, tuple[Placement, ...]]
    warning: str = ""


def of_scan(loader: Loader, scanned: Optional[RankTable]) -> Optional[AmpiImages]:
    """Copies found by their ELF headers, numbered by the share that they lie in; None if one lies in no rank's."""
    placements: dict[int, tuple[Placement, ...]] = {}
    for rank in scanned.ranks if scanned else ():
        for placement in rank.placements:
            number = loader.space.rank_at(placement.copy) if isinstance(placement, Rebase) else None
            if number is None:
                return None
            placements[number] = (*placements.get(number, ()), placement)
    return AmpiImages("pie", scanned.objects if scanned else (), placements)


def of_original(target: Target, maps: Sequence[MemoryMapping]) -> AmpiImages:
    """The user's program before any copy of it is made; its libraries can't be distinguished from others then."""
    for mapping in file_starts(maps):
        loaded = loaded_at(target.read, mapping.start) if mapping.path.endswith(USER_SUFFIX) else None
        if loaded is not None:
            return AmpiImages("pie", (object_of(0, loaded, mapping.path, is_program=True),), {})
    return AmpiImages("pie", (), {})


def of_tls(loader: Loader, threads: Mapping[int, AmpiThread], size: int, align: int) -> AmpiImages:
    """Variant II (ELF Handling For Thread-Local Storage, 3.4.6): the program's block ends at the thread pointer.

    A rank's thread pointer is not where the stack's end makes it likely, but where the thread itself has it.
    """
    program = object_of(0, loader.elf, loader.path, is_program=True)
    program = replace(program, tls_offset=-(-program.tls_size // max(program.tls_align, 1)) * program.tls_align)
    placements: dict[int, tuple[Placement, ...]] = {}
    for number, thread in threads.items():
        pointer = rank_pointer(thread, size, align)
        placements[number] = (TlsBlock(0, pointer, size, True, 0),) if pointer is not None else ()
    return AmpiImages("tls", (program,), placements)


def rank_pointer(thread: AmpiThread, size: int, align: int) -> Optional[int]:
    """The thread pointer of a rank with `size` bytes of block after its stack; None if its thread does not hold it."""
    pointer = -(-thread.stack.end // align) * align + size
    return pointer if pointer in thread.words else None


def of_program(loader: Loader, threads: Mapping[int, AmpiThread]) -> AmpiImages:
    """Without a method: all ranks use the one program."""
    return AmpiImages("none", (object_of(0, loader.elf, loader.path, is_program=True),), dict.fromkeys(threads, ()))


def of_links(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, programs: Optional[Mapping[int, int]] = None
) -> Optional[AmpiImages]:
    """The objects that the system's loader has loaded for each rank: in namespaces (pip), or from files (fs).

    `programs`: by rank, the list's entry of its program, if AMPI's own vector is not known. None if the list of them
    does not validate.
    """
    try:
        handles = dict(enumerate(_handles(target, loader))) if programs is None else dict(programs)
        common = frozenset(link(target, entry).bias for entry in chain(target, _first(target, loader)))
        in_files = all(link(target, handle).bias in common for handle in handles.values())
        chains = {rank: (handle,) if in_files else tuple(chain(target, handle)) for rank, handle in handles.items()}
        copies = placed(target, maps, chains, frozenset() if in_files else common, handles)
    except (MemoryUnreadable, ObjectFileError):
        return None
    if not copies or not copies[1]:
        return None
    return (
        AmpiImages("fs", copies[0], gnu_unique.with_unique(target, *copies)) if in_files else AmpiImages("pip", *copies)
    )


def programs_by_stacks(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, threads: Mapping[int, AmpiThread]
) -> Optional[dict[int, int]]:
    """By rank, the list's entry of the one program whose code its stack returns to; None if there are no programs.

    A rank's main is called with that rank's own copy of the code, and waits there while anything else runs.
    """
    code = _programs(target, maps, loader)
    if not code:
        return None
    entry_of = {}
    for number, thread in threads.items():
        entered = _entered(target, thread, code)
        if len(entered) == 1:
            entry_of[number] = entered.pop()
    claims = Counter(entry_of.values())
    return {number: entry for number, entry in entry_of.items() if claims[entry] == 1}


def _programs(target: Target, maps: Sequence[MemoryMapping], loader: Loader) -> dict[int, Region]:
    """The entries of the programs that ampicc has made beside the loader, and where the code of each is."""
    paths = {mapping.start: mapping.path for mapping in maps if mapping.offset == 0}
    ranges = {}
    try:
        for entry, bias in entries(target, loader.elf.dynamic.get(DT_DEBUG, 0)):
            if USER_FILE.search(paths.get(bias, "")):
                code = [segment for segment in LoadedElf(target.read, bias).segments if segment.flags & 1]
                ranges[entry] = Region(bias + code[0].vaddr, code[-1].end - code[0].vaddr) if code else Region(0, 0)
    except (MemoryUnreadable, ObjectFileError):
        return {}
    return ranges


def _entered(target: Target, thread: AmpiThread, code: Mapping[int, Region]) -> set[int]:
    """Whose code words of the outermost part of the stack lie in; of the whole stack if that part has none."""
    for size in (min(OUTERMOST, thread.stack.size), thread.stack.size):
        words = array("Q", read_or_none(target, thread.stack.end - size, size & -8) or b"")
        low, high = min(region.start for region in code.values()), max(region.end for region in code.values())
        near = {value for value in words if low <= value < high}
        matches = {entry for entry, held in code.items() if any(value in held for value in near)}
        if matches:
            return matches
    return set()


def _first(target: Target, loader: Loader) -> int:
    """Where the loader's own namespace begins: r_map of struct r_debug (<link.h>), which DT_DEBUG leads to."""
    return word_at(target, loader.elf.dynamic.get(DT_DEBUG, 0) + 8)


def _handles(target: Target, loader: Loader) -> tuple[int, ...]:
    """The rank's link_maps: the last word of each element of a vector {begin, end, capacity}, one element a rank."""
    if loader.rank_data is None:
        return ()
    try:
        begin, end, _ = struct.unpack("<QQQ", target.read(loader.rank_data, 24))
        size, rest = divmod(end - begin, loader.space.count)
        if end <= begin or rest or size % 8 or not 8 <= size <= 256:
            return ()
        data = target.read(begin, end - begin)
        return tuple(struct.unpack_from("<Q", data, at + size - 8)[0] for at in range(0, len(data), size))
    except MemoryUnreadable:
        return ()
