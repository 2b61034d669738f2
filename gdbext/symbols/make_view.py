"""Makes views (views.py): joins a file with its debug information, and changes what GDB's lookup of names goes by.

Takes ELF files; writes one. Imported where a view has to be made: found ones need none of this.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Optional

from pieglobalsfind.elf.file import (
    HEADER_SIZE,
    SECTION_HEADER_SIZE,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    SHT_NOBITS,
    ElfFile,
    Section,
)
from pieglobalsfind.errors import ObjectFileError

DT_NULL, DT_SYMBOLIC = 0, 16
SHT_PROGBITS, SHT_STRTAB, SHT_DYNAMIC = 1, 3, 6
MERGE_TIMEOUT = 120  # seconds

_DYNAMIC = struct.Struct("<qQ")  # System V gABI, chapter 5
_FLAGS_OFFSET = 8  # of sh_flags in a section header
_OFFSETS, _COUNTS = 32, 56  # of e_phoff and of e_phnum in the ELF header
PIECE = 1 << 24  # bytes that are copied at once
_SECTION = struct.Struct("<IIQQQQIIQQ")


def make(path: str, debug_path: str, view: str, anchor: str) -> None:
    """Write the view and its anchor; the view comes last to its place, so that it is never there alone."""
    with new_file(view) as made:
        if debug_path:
            merge(path, debug_path, made)
        else:
            shutil.copyfile(path, made)
        change(made)
        with new_file(anchor) as bare:
            write_anchor(made, bare)


@contextmanager
def new_file(place: str) -> Iterator[str]:
    """Give a file to write inside, which then moves to its place: two debuggers never see half a file."""
    descriptor, partial = tempfile.mkstemp(dir=os.path.dirname(place), prefix="partial-")
    os.close(descriptor)
    try:
        yield partial
        os.replace(partial, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def merge(path: str, debug_path: str, result: str) -> None:
    """Join a stripped file and its debug file: GDB would keep the debug file's symbols apart, at the wrong copy."""
    tool = shutil.which("eu-unstrip")
    if tool is None:
        raise ObjectFileError(f"{path} has a separate debug file, and eu-unstrip is missing", "install elfutils")
    command = [tool, "--force", "-o", result, path, debug_path]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MERGE_TIMEOUT, check=False
    )
    if done.returncode:
        raise ObjectFileError(f"cannot join {path} and {debug_path}, {done.stderr.strip()}")


def change(path: str) -> None:
    """Make the ELF file `path` a view of itself."""
    with ElfFile(path) as elf, open(path, "r+b") as file:
        for index, section in enumerate(elf.sections):
            if section.flags & SHF_ALLOC:
                file.seek(elf.header.section_offset + index * SECTION_HEADER_SIZE + _FLAGS_OFFSET)
                file.write(struct.pack("<Q", section.flags | SHF_EXECINSTR))
            if section.type == SHT_DYNAMIC:
                spare = _spare_entry(elf, section)
                if spare is not None:
                    file.seek(spare)
                    file.write(_DYNAMIC.pack(DT_SYMBOLIC, 0))


def _spare_entry(elf: ElfFile, section: Section) -> Optional[int]:
    """Where a DT_NULL stands that is not the last entry; the dynamic section must still end with one."""
    content = elf.section_bytes(section)
    for at in range(0, len(content) - 2 * _DYNAMIC.size + 1, _DYNAMIC.size):
        tag, _ = _DYNAMIC.unpack_from(content, at)
        if tag in (DT_NULL, DT_SYMBOLIC):
            return section.offset + at if tag == DT_NULL else None
    return None


def write_anchor(view: str, anchor: str) -> None:
    """Write the sections of a view that are in memory, as bare bytes: no symbols, no notes, no debug information."""
    with ElfFile(view) as elf, open(anchor, "r+b") as file:
        kept = [section for section in elf.sections if section.flags & SHF_ALLOC]
        end = max((section.offset + section.size for section in kept if section.type != SHT_NOBITS), default=0)
        end = -(-max(end, HEADER_SIZE) // 8) * 8
        names = b"\0" + b"".join(section.name.encode() + b"\0" for section in kept) + b".shstrtab\0"
        for start in range(0, end, PIECE):
            file.write(elf.read(start, min(PIECE, end - start, elf.size - start)))
        file.seek(end)
        file.write(bytes(SECTION_HEADER_SIZE))
        name = 1
        for section in kept:
            kind = SHT_NOBITS if section.type == SHT_NOBITS else SHT_PROGBITS
            flags = section.flags & (SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR | SHF_TLS)
            place = section.address, section.offset, section.size
            file.write(_SECTION.pack(name, kind, flags, *place, 0, 0, section.align, 0))
            name += len(section.name.encode()) + 1
        count = len(kept) + 2
        strings = end + count * SECTION_HEADER_SIZE
        file.write(_SECTION.pack(name, SHT_STRTAB, 0, 0, strings, len(names), 0, 0, 1, 0))
        file.write(names)
        file.seek(_OFFSETS)
        file.write(struct.pack("<QQ", 0, end))
        file.seek(_COUNTS)  # no program headers
        file.write(struct.pack("<HHHH", 0, SECTION_HEADER_SIZE, count, count - 1))
