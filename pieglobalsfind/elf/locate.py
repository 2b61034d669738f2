"""The file of a loaded object: its path, whether the target still runs this file, and its debug file.

Takes a target and what is known of the object in memory; gives a path, or why there is none. It never takes a file of
the same name for the same file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.elf.file import PT_LOAD, ElfFile, ProgramHeader
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent, Object
from pieglobalsfind.target import Target

DEBUG_ROOT = "/usr/lib/debug"
LARGEST_LINK = 4096  # bytes of .gnu_debuglink: a file's name and a checksum


@dataclass(frozen=True)
class LoadedIdentity:
    """What memory says of a loaded file. `extents`: (memory size, file size, flags) of each PT_LOAD."""

    path: str
    build_id: bytes
    extents: tuple[tuple[int, int, int], ...]


def identity_of(elf_object: Object) -> LoadedIdentity:
    """What the rank table knows of an object."""
    extents = tuple((segment.memory_size, segment.file_size, segment.protection) for segment in elf_object.segments)
    return LoadedIdentity(elf_object.path, elf_object.build_id, extents)


def identity_by_headers(path: str, build_id: bytes, headers: Sequence[ProgramHeader]) -> LoadedIdentity:
    """What the program headers in memory tell."""
    return LoadedIdentity(path, build_id, _extents(headers))


def _extents(headers: Sequence[ProgramHeader]) -> tuple[tuple[int, int, int], ...]:
    loads = sorted((header for header in headers if header.type == PT_LOAD), key=lambda header: header.vaddr)
    return tuple((load.memory_size, load.file_size, load.flags & 7) for load in loads)


def object_path(target: Target, wanted: LoadedIdentity, folders: Sequence[str] = ()) -> Union[str, Absent]:
    """Where the very file that the target runs can be opened; Absent names both files if another is in its place.

    `folders` of the user's are searched after the file's own place.
    """
    refusal: Union[Absent, None] = None
    for place in _places(target, wanted.path, folders):
        reason = _difference(place, wanted)
        if reason is None:
            return place
        refusal = refusal or reason
    return refusal or Absent(f"the file {wanted.path} is not there any more", "put it back")


def _places(target: Target, path: str, folders: Sequence[str]) -> Iterator[str]:
    for name in (path, f"{path} (deleted)"):
        place = target.open_path(name)
        if place is not None:
            yield place
    for folder in folders:
        elsewhere = os.path.join(folder, os.path.basename(path))
        if os.path.isfile(elsewhere):
            yield elsewhere


def _difference(place: str, wanted: LoadedIdentity) -> Optional[Absent]:
    """Why the file at `place` is not the wanted one; None if it is."""
    try:
        with ElfFile(place) as elf:
            build_id, extents = elf.build_id, _extents(elf.program_headers)
    except ObjectFileError as error:
        return Absent(error.sentence, error.hint)
    hint = "put back the file that was running, or look at a new run"
    if build_id != wanted.build_id:
        theirs = wanted.build_id.hex() or "none"
        return Absent(f"{place} has build-id {build_id.hex() or 'none'}, the target runs {theirs}", hint)
    if not build_id and extents != wanted.extents:
        return Absent(f"{place} has other segments than what the target runs", hint)
    return None


def debug_path(elf: ElfFile) -> Optional[str]:
    """The separate debug file of `elf`, by build-id or .gnu_debuglink, if it is installed and belongs to it."""
    return next((place for place in _debug_places(elf) if _belongs(place, elf)), None)


def _belongs(place: str, elf: ElfFile) -> bool:
    try:
        with ElfFile(place) as elf_file:
            if elf.build_id:
                return elf_file.build_id == elf.build_id
            return _checksum(elf_file) == _linked_checksum(elf)
    except ObjectFileError:
        return False


def _debug_places(elf: ElfFile) -> Iterator[str]:
    """The places that GDB looks at too ("Separate Debug Files")."""
    name = elf.build_id.hex()
    if len(name) > 2:
        yield f"{DEBUG_ROOT}/.build-id/{name[:2]}/{name[2:]}.debug"
    link = _debug_link(elf).partition(b"\0")[0].decode("utf-8", "surrogateescape")
    if link and "/" not in link:
        folder = os.path.dirname(os.path.abspath(elf.path))
        yield f"{folder}/{link}"
        yield f"{folder}/.debug/{link}"
        yield f"{DEBUG_ROOT}{folder}/{link}"


def _debug_link(elf: ElfFile) -> bytes:
    section = elf.section(".gnu_debuglink")
    return elf.section_bytes(section) if section is not None and section.size <= LARGEST_LINK else b""


def _linked_checksum(elf: ElfFile) -> int:
    return int.from_bytes(_debug_link(elf)[-4:], "little" if elf.header.order == "<" else "big")


def _checksum(elf: ElfFile) -> int:
    """CRC-32 of the whole file, as .gnu_debuglink has it."""
    import zlib  # late: few files need it, and debuggers start the sooner

    value = 0
    for start in range(0, elf.size, 1 << 20):
        value = zlib.crc32(elf.read(start, min(1 << 20, elf.size - start)), value)
    return value
