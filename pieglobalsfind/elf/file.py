"""ELF files: headers, sections, dynamic section and notes, named as the generic ABI names them.

Takes a path (or the bytes of a header found in memory) and reads only what is asked for. It believes no count, size or
offset of a file before it has compared it with the file's size; it knows nothing of processes and never writes.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import TracebackType
from typing import Optional

from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.machine.lookup import processor_of
from pieglobalsfind.machine.processor import Processor

ET_CORE = 4
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_TLS, PT_GNU_RELRO = 1, 2, 4, 7, 0x6474E552
PF_X, PF_W = 1, 2
PN_XNUM = 0xFFFF
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
SHN_XINDEX = 0xFFFF
NT_GNU_BUILD_ID = 3
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ = 4, 5, 6, 7, 8, 10
DT_RELACOUNT = 0x6FFFFFF9
DT_GNU_HASH = 0x6FFFFEF5

HEADER_SIZE = 64
PROGRAM_HEADER_SIZE = 56
SECTION_HEADER_SIZE = 64
SYMBOL_SIZE = 24
ELF_MAGIC = b"\x7fELF"
ONLY_READ = "ranklens-debug-information"  # our memfds of files that no process runs
MOST_SECTIONS = 1 << 20


@dataclass(frozen=True)
class Header:
    """The ELF header (gABI, "ELF Header"). `order` is struct's sign of the byte order, "<" or ">"."""

    order: str
    type: int
    machine: int
    program_offset: int
    program_count: int
    section_offset: int
    section_count: int
    section_names: int

    @property
    def processor(self) -> Processor:
        """The table of the file's processor; raises `ObjectFileError` if there is none."""
        return processor_of(self.machine)


@dataclass(frozen=True)
class ProgramHeader:
    """A program header; `flags` as the gABI's PF_X, PF_W, PF_R."""

    type: int
    flags: int
    offset: int
    vaddr: int
    file_size: int
    memory_size: int
    align: int

    @property
    def end(self) -> int:
        """The first vaddr after it."""
        return self.vaddr + self.memory_size


@dataclass(frozen=True)
class Section:
    """A section header with its name."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


def parse_header(data: bytes, what: str) -> Header:
    """The header in the first 64 bytes of `what`; raises `ObjectFileError` if it is not a 64-bit ELF header."""
    if data[:4] != ELF_MAGIC:
        raise ObjectFileError(f"{what} is not an ELF file")
    if len(data) < HEADER_SIZE:
        raise ObjectFileError(f"{what} is truncated in its ELF header")
    if data[4] != 2:
        raise ObjectFileError(f"{what} is a 32-bit ELF file", "only 64-bit programs can be read")
    order = {1: "<", 2: ">"}.get(data[5])
    if order is None:
        raise ObjectFileError(f"{what} has a damaged ELF header, its byte order is {data[5]}")
    fields = struct.unpack_from(order + "HHIQQQIHHHHHH", data, 16)
    kind, machine, _, _, program_offset, section_offset, _, _, program_size, count, section_size, sections, names = (
        fields
    )
    if count and program_size != PROGRAM_HEADER_SIZE:
        raise ObjectFileError(f"{what} has a damaged ELF header, its program headers take {program_size} bytes")
    if sections and section_size != SECTION_HEADER_SIZE:
        sections = section_offset = 0
    return Header(order, kind, machine, program_offset, count, section_offset, sections, names)


def parse_program_headers(data: bytes, order: str) -> tuple[ProgramHeader, ...]:
    """The program headers in `data`, which holds nothing else."""
    whole = len(data) - len(data) % PROGRAM_HEADER_SIZE
    return tuple(
        ProgramHeader(kind, flags, offset, vaddr, file_size, memory_size, align)
        for kind, flags, offset, vaddr, _, file_size, memory_size, align in struct.iter_unpack(
            order + "IIQQQQQQ", data[:whole]
        )
    )


def parse_notes(data: bytes, order: str, align: int = 4) -> Iterator[tuple[bytes, int, bytes]]:
    """The notes in `data` as (owner, type, description); ends where one does not fit."""
    step = 8 if align == 8 else 4
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from(order + "III", data, at)
        start = at + 12 + -(-name_size // step) * step if step == 4 else -(-(at + 12 + name_size) // 8) * 8
        if start + size > len(data):
            return
        yield data[at + 12 : at + 12 + name_size].rstrip(b"\0"), kind, data[start : start + size]
        at = -(-(start + size) // step) * step


def build_id_in(data: bytes, order: str, align: int = 4) -> bytes:
    """The build-id among the notes in `data`, or b""."""
    for owner, kind, description in parse_notes(data, order, align):
        if owner == b"GNU" and kind == NT_GNU_BUILD_ID:
            return description
    return b""


def string_at(strings: bytes, offset: int) -> str:
    """The string that begins at `offset` of a string table; "" beyond its end."""
    end = strings.find(b"\0", offset)
    return strings[offset : end if end >= 0 else len(strings)].decode("utf-8", "replace")


class ElfFile:
    """One ELF file, open until `close()`; raises `ObjectFileError` if it can't be read or is none.

    Read by pread and not by mmap: a file that is cut short while it is mapped would kill the debugger that we run in.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = open_regular(path)
        try:
            self.size = os.fstat(self._descriptor).st_size
            self.header = parse_header(self.read(0, min(HEADER_SIZE, self.size)), path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; what was read stays valid."""
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes at a file offset; raises `ObjectFileError`."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ObjectFileError(f"{self.path} is truncated or damaged, it has no {size} bytes at {offset:#x}")
        parts = []
        while size:
            try:
                part = os.pread(self._descriptor, size, offset)
            except OSError as error:
                raise ObjectFileError(f"cannot read {self.path}, {error.strerror}") from error
            if not part:
                raise ObjectFileError(f"{self.path} is being changed", "try again when it is whole")
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return b"".join(parts)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of what is not a hole between two offsets of the file, ascending (lseek(2), SEEK_DATA)."""
        end = min(end, self.size)
        while start < end:
            try:
                first = os.lseek(self._descriptor, start, os.SEEK_DATA)
                last = os.lseek(self._descriptor, first, os.SEEK_HOLE)
            except OSError as error:
                if error.errno != errno.ENXIO:  # the file system does not know its holes
                    yield start, end
                return
            if first < end:
                yield first, min(last, end)
            start = last

    @cached_property
    def program_headers(self) -> tuple[ProgramHeader, ...]:
        """All program headers in file order."""
        count = self.header.program_count
        if count == PN_XNUM:
            count = struct.unpack_from(self.header.order + "I", self.read(self.header.section_offset + 44, 4))[0]
        return parse_program_headers(
            self.read(self.header.program_offset, count * PROGRAM_HEADER_SIZE), self.header.order
        )

    @cached_property
    def segments(self) -> tuple[ProgramHeader, ...]:
        """The PT_LOADs."""
        return tuple(header for header in self.program_headers if header.type == PT_LOAD)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections; () if the file has no section headers (or damaged ones)."""
        start, count, names = self.header.section_offset, self.header.section_count, self.header.section_names
        if not start or start + SECTION_HEADER_SIZE > self.size:
            return ()
        form = self.header.order + "IIQQQQIIQQ"
        first = struct.unpack(form, self.read(start, SECTION_HEADER_SIZE))
        count = count or first[5]
        names = first[6] if names == SHN_XINDEX else names
        if count > MOST_SECTIONS or start + count * SECTION_HEADER_SIZE > self.size:
            return ()
        raw = list(struct.iter_unpack(form, self.read(start, count * SECTION_HEADER_SIZE)))
        strings = b""
        if names < count and raw[names][4] + raw[names][5] <= self.size:
            strings = self.read(raw[names][4], raw[names][5])
        return tuple(Section(string_at(strings, header[0]), *header[1:]) for header in raw)

    def section(self, name: str) -> Optional[Section]:
        """The first section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def section_bytes(self, section: Section) -> bytes:
        """What the file holds of a section: nothing for SHT_NOBITS."""
        return b"" if section.type == SHT_NOBITS else self.read(section.offset, section.size)

    def at(self, vaddr: int, size: int) -> bytes:
        """`size` bytes at a vaddr, zeros where a segment has memory and no file; raises `ObjectFileError`."""
        for segment in self.segments:
            if segment.vaddr <= vaddr and vaddr + size <= segment.end and size >= 0:
                start = vaddr - segment.vaddr
                held = max(0, min(size, segment.file_size - start))
                if size - held > self.size:
                    break
                return (self.read(segment.offset + start, held) if held else b"") + bytes(size - held)
        raise ObjectFileError(f"{self.path} is damaged, it has no segment with {size} bytes at vaddr {vaddr:#x}")

    @cached_property
    def build_id(self) -> bytes:
        """The build-id, b"" if there is none."""
        for header in self.program_headers:
            if header.type == PT_NOTE and header.offset + header.file_size <= self.size:
                build_id = build_id_in(self.read(header.offset, header.file_size), self.header.order, header.align)
                if build_id:
                    return build_id
        for note in self.sections:  # relocatable files and some debug files have no program headers for them
            if note.type == SHT_NOTE and note.offset + note.size <= self.size:
                build_id = build_id_in(self.section_bytes(note), self.header.order, note.align)
                if build_id:
                    return build_id
        return b""

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int], ...]:
        """The dynamic section as (tag, value), up to DT_NULL; () if there is none."""
        for header in self.program_headers:
            if header.type == PT_DYNAMIC and header.file_size:
                return parse_dynamic(self.read(header.offset, header.file_size), self.header.order)
        return ()

    def dynamic_value(self, tag: int) -> Optional[int]:
        """The value of the first entry with this tag, or None."""
        return next((value for found_tag, value in self.dynamic if found_tag == tag), None)

    @cached_property
    def tls(self) -> Optional[ProgramHeader]:
        """PT_TLS, or None."""
        return next((header for header in self.program_headers if header.type == PT_TLS), None)


def parse_dynamic(data: bytes, order: str) -> tuple[tuple[int, int], ...]:
    """The (tag, value) pairs in `data` before DT_NULL."""
    entries = []
    for tag, value in struct.iter_unpack(order + "QQ", data[: len(data) - len(data) % 16]):
        if tag == 0:
            break
        entries.append((tag, value))
    return tuple(entries)


def open_regular(path: str) -> int:
    """A descriptor of the file, to read; raises `ObjectFileError`."""
    try:
        # O_NONBLOCK: a FIFO in the place of a file must not stop us
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ObjectFileError(f"cannot open {path}, {(error.strerror or 'unknown error').lower()}") from error
    except ValueError as error:
        raise ObjectFileError(f"cannot open {path!r}, it is not a path") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ObjectFileError(f"{path} is not a regular file")
    return descriptor


@lru_cache(maxsize=8)
def memory_file(content: bytes) -> str:
    """A file in memory that this user's processes can open as long as this one lives."""
    descriptor = os.memfd_create("ranklens", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return f"/proc/{os.getpid()}/fd/{descriptor}"
