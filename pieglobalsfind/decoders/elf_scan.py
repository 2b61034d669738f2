"""Ranks without any registry: anonymous memory that begins with the ELF header of a loaded object is a copy of it.

Takes a target; gives None if there is no such memory. It knows where a rank's copies are; in a target that
stands still also stacks and contexts (`scanned_stacks.py`). Numbers are by ascending address; heaps are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind import model
from pieglobalsfind.decoders.scanned_stacks import with_stacks
from pieglobalsfind.elf.file import ELF_MAGIC, HEADER_SIZE, ONLY_READ, PT_DYNAMIC, PT_NOTE, PT_TLS, ProgramHeader
from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.model import SCAN, Absent, Evidence, Object, RankTable, Rebase, Segment
from pieglobalsfind.target import MemoryMapping, Target, read_many

Identity = tuple[bytes, tuple[ProgramHeader, ...], bytes]  # ELF header, program headers, build-id
FIRST = 1024  # bytes of an object, which hold its headers, and mostly its build-id
EVIDENCE = Evidence(SCAN, "ELF headers in anonymous memory")
NUMBERED = "there is no registry: copies were found by their ELF headers, and ranks are numbered by ascending address"
UNEQUAL = "objects have different numbers of copies: which copies belong to the same rank is a guess"
# What a program has and a library has not; the last three are what AMPI calls instead (ampi.C, AMPI_Main_Get)
ENTRIES = ("main", "MAIN__", "AMPI_Main", "AMPI_Main_noargs", "AMPI_Main_fortran_export")
_UNKNOWN = Absent("a scan of memory can't find it", "let the program's runtime publish a registry")


@dataclass(frozen=True)
class CopiedObject:
    """A loaded object, and where its copies begin, ascending."""

    original: LoadedElf
    path: str
    copies: tuple[int, ...]


def decode(target: Target) -> Optional[RankTable]:
    """The ranks that copies in memory speak for, with their stacks; None without any copy."""
    maps = target.maps()
    table = ranks_of_copies(target, maps)
    return with_stacks(target, table, maps) if table is not None else None


def ranks_of_copies(target: Target, maps: Sequence[MemoryMapping]) -> Optional[RankTable]:
    """The same without stacks."""
    copies = _copies(target, [mapping.start for mapping in maps if mapping.readable and _is_anonymous(mapping)])
    if not copies:
        return None
    loaded = ((original, path, copies.get(_identity(target, original))) for original, path in _loaded(target, maps))
    objects = [CopiedObject(original, path, tuple(same)) for original, path, same in loaded if same]
    return _table(objects) if objects else None


def _is_anonymous(mapping: MemoryMapping) -> bool:
    """Memory, shared memory and memfds; no file that the loader could have mapped, nor one that we read from."""
    if mapping.path.startswith(f"/memfd:{ONLY_READ}"):
        return False
    return mapping.path in ("", "[heap]") or mapping.path.startswith(("[anon", "/memfd:", "/dev/zero"))


def _copies(target: Target, starts: Sequence[int]) -> dict[Identity, list[int]]:
    """By identity, the places that begin with an ELF header; the same first bytes are parsed once."""
    begins = _with_magic(target, starts)
    identities: dict[bytes, Identity] = {}
    copies: dict[Identity, list[int]] = {}
    for base, first in zip(begins, read_many(target, [(base, FIRST) for base in begins])):
        identity = identities.get(first) if first is not None else None
        elf = loaded_at(target.read, base) if identity is None else None
        if elf is not None and elf.program_headers:
            identity = _identity(target, elf)
            if first is not None and all(
                header.vaddr - elf.low + header.memory_size <= FIRST
                for header in elf.program_headers
                if header.type == PT_NOTE
            ):
                identities[first] = identity
        if identity is not None:
            copies.setdefault(identity, []).append(base)
    return copies


def _with_magic(target: Target, starts: Sequence[int]) -> list[int]:
    heads = read_many(target, [(start, len(ELF_MAGIC)) for start in starts])
    return [start for start, head in zip(starts, heads) if head == ELF_MAGIC]


def _loaded(target: Target, maps: Sequence[MemoryMapping]) -> list[tuple[LoadedElf, str]]:
    """Every ELF file that is mapped from its beginning."""
    paths = {mapping.start: mapping.path for mapping in maps if mapping.offset == 0 and mapping.path.startswith("/")}
    files = [mapping for mapping in maps if mapping.start in paths and mapping.readable and not _is_anonymous(mapping)]
    headers = (loaded_at(target.read, start) for start in _with_magic(target, [mapping.start for mapping in files]))
    return [(elf, paths[elf.base]) for elf in headers if elf is not None]


def _identity(target: Target, elf: LoadedElf) -> Identity:
    """What a copy has in common with its original: headers, byte for byte, and build-id."""
    return target.read(elf.base, HEADER_SIZE), elf.program_headers, elf.build_id


def _table(copied_objects: list[CopiedObject]) -> RankTable:
    most = max(len(copied_object.copies) for copied_object in copied_objects)
    warnings = [NUMBERED]
    if any(len(copied_object.copies) != most for copied_object in copied_objects):
        warnings.append(UNEQUAL)
    objects = tuple(
        object_of(index, copied_object.original, copied_object.path)
        for index, copied_object in enumerate(copied_objects)
    )
    return RankTable(
        method="",
        runtime="",
        rank_count=most,
        objects=objects,
        ranks=tuple(_rank(number, copied_objects, objects) for number in range(most)),
        evidence=EVIDENCE,
        warnings=tuple(warnings),
        processor=copied_objects[0].original.header.processor,
    )


def object_of(index: int, elf: LoadedElf, path: str, is_program: bool = False) -> Object:
    """An object by what is mapped of it; one with a function of these names is a program whatever the caller says."""
    headers = {header.type: header for header in elf.program_headers}
    dynamic, tls = headers.get(PT_DYNAMIC), headers.get(PT_TLS)
    return Object(
        index=index,
        path=path,
        build_id=elf.build_id,
        base=elf.base,
        load_bias=elf.load_bias,
        span=elf.span,
        segments=tuple(
            Segment(segment.vaddr - elf.low, segment.memory_size, segment.file_size, segment.flags & 7)
            for segment in elf.segments
        ),
        privatized=True,
        is_program=is_program or any(elf.symbol(name) is not None for name in ENTRIES),
        dynamic=elf.load_bias + dynamic.vaddr if dynamic else 0,
        tls_size=tls.memory_size if tls else 0,
        tls_align=tls.align if tls else 0,
    )


def _rank(number: int, copied_objects: list[CopiedObject], objects: tuple[Object, ...]) -> model.Rank:
    placements = tuple(
        Rebase(elf_object.index, elf_object.base, elf_object.span, copied_object.copies[number])
        for elf_object, copied_object in zip(objects, copied_objects)
        if number < len(copied_object.copies)
    )
    return model.Rank(
        rank=number,
        state=model.UNKNOWN_STATE,
        processing_element=model.UNKNOWN_ELEMENT,
        kernel_thread=0,
        context=_UNKNOWN,
        stack=_UNKNOWN,
        heap=_UNKNOWN,
        heap_used=_UNKNOWN,
        range=_UNKNOWN,
        waiting=None,
        switches=_UNKNOWN,
        placements=placements,
        evidence=EVIDENCE,
    )
