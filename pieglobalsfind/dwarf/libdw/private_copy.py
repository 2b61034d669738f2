"""The bytes of an ELF file for libdw, apart from the file itself.

Takes a path; gives the descriptor of a copy that has no name. libdw maps what it reads: cutting a
mapped file short kills the debugger that we run in, and writing it again changes what was read from it. So are the
files read that a file refers to: its debug file, split units (DWARF 5, 7.3.2) and a supplementary file (7.3.6).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pieglobalsfind.elf.file import ONLY_READ, ElfFile, open_regular
from pieglobalsfind.elf.locate import DEBUG_ROOT, LARGEST_LINK, debug_path
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.shell.signals import cleanup_on_signal

MAGIC = b"\x7fELF"  # libdw would take packed files too, however large they become
LARGEST_IN_MEMORY = 64 << 20  # bytes; copies of larger files are on the disk
LARGE_FILES = "/var/tmp"  # as the Filesystem Hierarchy Standard has it; /tmp is memory on many machines
BEHIND = 4096  # zeros after the file's end, where a name without an end comes to one


def opened(path: str) -> int:
    """A descriptor of what the file holds now, for libdw to close; raises `ObjectFileError`."""
    descriptor = open_regular(path)
    try:
        if os.pread(descriptor, len(MAGIC), 0) != MAGIC:
            raise ObjectFileError(f"{path} is not an ELF file")
        return copied(descriptor, path)
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


def opened_split(path: str, folder: str, name: str) -> int:
    """The same of a file of split units: by its name, in the folder of `path` or in the one it was compiled in."""
    for place in (Path(path).absolute().parent / name, Path(folder) / name):
        with suppress(ObjectFileError):
            return opened(str(place))
    return -1


def refers_to(path: str) -> tuple[bytes, bytes]:
    """The name and build-id of the supplementary file that a file, or its debug file, refers to; b"" twice without."""
    with suppress(ObjectFileError), ElfFile(path) as elf:
        debug = debug_path(elf)
        with ElfFile(debug or path) as elf_file:
            section = elf_file.section(".gnu_debugaltlink")
            if section is not None and section.size <= LARGEST_LINK:
                name, _, build_id = elf_file.section_bytes(section).partition(b"\0")
                return name, build_id
    return b"", b""


def opened_supplementary(path: str) -> int:
    """The same of the supplementary file that belongs to a file; -1 if it is not at the place that the file names."""
    name, build_id = refers_to(path)
    for place in _supplementary_places(path, os.fsdecode(name), build_id.hex()):
        with suppress(ObjectFileError), ElfFile(str(place)) as elf_file:
            if build_id and elf_file.build_id == build_id:
                return opened(str(place))
    return -1


def _supplementary_places(path: str, name: str, build_id: str) -> Iterator[Path]:
    yield Path(DEBUG_ROOT) / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    with suppress(ObjectFileError), ElfFile(path) as elf:
        yield Path(debug_path(elf) or path).absolute().parent / name


def copied(descriptor: int, path: str) -> int:
    """A descriptor of a copy; raises `ObjectFileError` if the file changes meanwhile, and `OSError`."""
    before = os.fstat(descriptor)
    copy = _nameless(before.st_size)
    try:
        at = 0
        while at < before.st_size and (sent := os.sendfile(copy, descriptor, at, before.st_size - at)):
            at += sent
        after = os.fstat(descriptor)
        if (at, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or after.st_size != at:
            raise ObjectFileError(f"{path} is being changed", "try again when it is whole")
        os.ftruncate(copy, at + BEHIND)
    except BaseException:
        os.close(copy)
        raise
    return copy


def _nameless(size: int) -> int:
    """A file to write a copy to, which is gone when no process has it open any more."""
    if size <= LARGEST_IN_MEMORY:
        return os.memfd_create(ONLY_READ, os.MFD_CLOEXEC)
    place = Path(os.environ.get("TMPDIR") or LARGE_FILES) / f"ranklens-{os.urandom(8).hex()}"
    with cleanup_on_signal(lambda: place.unlink(missing_ok=True)):
        try:
            return os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        finally:
            place.unlink(missing_ok=True)
