"""The bytes of an ELF file for libdw, apart from the file itself.

Takes a path; gives the descriptor of a copy in memory. libdw maps what it reads: whoever cuts a mapped file short kills
the debugger that we run in, and whoever writes it anew changes what was said of it. Split units, supplementary files
and what a server of debug files sent are opened by libdw itself, and stay mapped.
"""

from __future__ import annotations

import os

from pieglobalsfind.elf import ONLY_READ, ElfFile, open_regular
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.object_file import debug_path

MAGIC = b"\x7fELF"  # libdw would take packed files too, however large they become
LARGEST = 1 << 30  # bytes; larger files are mapped as they are
BEHIND = 4096  # zeros behind the file's end, where a name without an end comes to one


def opened(path: str) -> int:
    """A descriptor of what the file holds now, for libdw to close; raises `ObjectFileError`."""
    descriptor = open_regular(path)
    try:
        if os.pread(descriptor, len(MAGIC), 0) != MAGIC:
            raise ObjectFileError(f"{path} is not an ELF file")
        size = os.fstat(descriptor).st_size
        return os.dup(descriptor) if size > LARGEST else _copied(descriptor, size)
    except OSError as error:
        raise ObjectFileError(f"{path} cannot be read, {(error.strerror or 'unknown error').lower()}") from error
    finally:
        os.close(descriptor)


def opened_debug_file(path: str, build_id: bytes) -> int:
    """The same of a file's separate debug file; -1 without one, or if `path` has another build-id by now."""
    try:
        with ElfFile(path) as elf:
            place = debug_path(elf) if elf.build_id == build_id else None
        return opened(place) if place is not None else -1
    except ObjectFileError:
        return -1


def _copied(descriptor: int, size: int) -> int:
    copy = os.memfd_create(ONLY_READ, os.MFD_CLOEXEC)
    try:
        at = 0
        while at < size and (sent := os.sendfile(copy, descriptor, at, size - at)):
            at += sent
        os.ftruncate(copy, at + BEHIND)
    except BaseException:
        os.close(copy)
        raise
    return copy
