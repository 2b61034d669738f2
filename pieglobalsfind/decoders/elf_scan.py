"""Finds copies without any registry: anonymous memory that begins with the ELF header of a loaded file.

Takes a `Target`; gives ranks that are known by their copies alone. It guesses no rank numbers: they follow the
addresses, and the table says so. Contexts, stacks and heaps stay unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.elf import PT_DYNAMIC, ProgramHeader, open_elf
from pieglobalsfind.elf_memory import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import BLOCKED, Absent, Evidence, Object, Rank, RankTable, Rebase, Segment
from pieglobalsfind.target import MemoryMapping, Target

_PAGE = 4096
_UNKNOWN = Absent("without a registry only copies can be found", "link the runtime's hooks to see more")
_EVIDENCE = Evidence("scan", "ELF headers in anonymous memory")
_WARNING = (
    "there is no registry: ranks were found by the ELF headers of their copies, are numbered by address, "
    "and nothing is known of their stacks"
)


def decode(target: Target) -> Optional[RankTable]:
    """The ranks that have copies of a loaded file, or None if no file has copies."""
    maps = target.maps()
    found = copies_by_build_id(target, maps)
    if not found:
        return None
    objects, copies = [], []
    for path, start in first_mappings(maps).items():
        build_id = build_id_at(target, start)
        if build_id in found:
            one = describe(target, path, start, build_id, len(objects))
            if one is not None:
                objects.append(one)
                copies.append(sorted(found[build_id]))
    if not objects:
        return None
    return table_of(target, tuple(objects), copies)


def first_mappings(maps: Sequence[MemoryMapping]) -> dict[str, int]:
    return {one.path: one.start for one in reversed(maps) if one.path.startswith("/") and one.offset == 0}


def copies_by_build_id(target: Target, maps: Sequence[MemoryMapping]) -> dict[bytes, list[int]]:
    """Where anonymous memory begins like an ELF file with a build-id."""
    found: dict[bytes, list[int]] = {}
    for one in maps:
        if one.path or not one.readable:
            continue
        try:
            begins = target.read(one.start, 4) == b"\x7fELF"
        except MemoryUnreadable:
            continue
        build_id = build_id_at(target, one.start) if begins else b""
        if build_id:
            found.setdefault(build_id, []).append(one.start)
    return found


def build_id_at(target: Target, start: int) -> bytes:
    try:
        return LoadedElf(target.read, start).build_id
    except (ObjectFileError, MemoryUnreadable):
        return b""


def describe(target: Target, path: str, start: int, build_id: bytes, index: int) -> Optional[Object]:
    """The original, by the program headers of its file; None if the file on disk is another one by now."""
    local = target.open_path(path)
    try:
        if local is None:
            return None
        with open_elf(local) as elf:
            if elf.build_id != build_id:
                return None
            loads = sorted(elf.segments, key=lambda one: one.vaddr)
            dynamic = next((one.vaddr for one in elf.program_headers if one.type == PT_DYNAMIC), 0)
    except ObjectFileError:
        return None
    if not loads:
        return None
    bias = start - (loads[0].vaddr & -_PAGE)
    return Object(
        index=index,
        path=path,
        build_id=build_id,
        base=start,
        load_bias=bias,
        span=bias + max(one.vaddr + one.memory_size for one in loads) - start,
        segments=tuple(segment_of(one, bias - start) for one in loads),
        privatized=True,
        is_program=index == 0,
        dynamic=bias + dynamic if dynamic else 0,
    )


def segment_of(header: ProgramHeader, shift: int) -> Segment:
    return Segment(header.vaddr + shift, header.memory_size, header.file_size, header.flags)


def table_of(target: Target, objects: tuple[Object, ...], copies: list[list[int]]) -> RankTable:
    most = max(len(one) for one in copies)
    ranks = tuple(
        rank_of(
            number,
            tuple(
                Rebase(one.index, one.base, one.span, copies[one.index][number])
                for one in objects
                if number < len(copies[one.index])
            ),
        )
        for number in range(most)
    )
    return RankTable(
        method="pie",
        runtime="unknown",
        rewrite_mode="",
        job_id="",
        node="",
        process_id=0,
        process_index=0,
        process_count=1,
        rank_count=most,
        generation=0,
        objects=objects,
        ranks=ranks,
        context_layout=(),
        evidence=_EVIDENCE,
        warnings=(_WARNING,),
    )


def rank_of(number: int, placements: tuple[Rebase, ...]) -> Rank:
    return Rank(
        rank=number,
        state=BLOCKED,
        processing_element=0,
        kernel_thread=0,
        context=_UNKNOWN,
        stack=_UNKNOWN,
        heap=_UNKNOWN,
        heap_used=_UNKNOWN,
        range=_UNKNOWN,
        waiting=None,
        switches=_UNKNOWN,
        placements=placements,
        evidence=_EVIDENCE,
    )
