"""ELF objects as they lie in a target's memory: headers, build-id and exported symbols, without any file.

Takes a function that reads memory and the address of an ELF header. It follows no list of the target's loader, and
whatever it can't read or believe is an answer of its own: no build-id, no symbol.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Optional

from pieglobalsfind.elf.file import (
    DT_GNU_HASH,
    DT_HASH,
    DT_RELA,
    DT_RELACOUNT,
    DT_RELASZ,
    DT_STRTAB,
    DT_SYMTAB,
    HEADER_SIZE,
    PROGRAM_HEADER_SIZE,
    PT_DYNAMIC,
    PT_LOAD,
    PT_NOTE,
    SYMBOL_SIZE,
    ProgramHeader,
    build_id_in,
    parse_dynamic,
    parse_header,
    parse_program_headers,
)
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, RanklensError
from pieglobalsfind.memory_map import of_files
from pieglobalsfind.target import MemoryMapping

Read = Callable[[int, int], bytes]

LARGEST_NOTE = 1 << 16  # bytes; real ones have some hundred
LARGEST_DYNAMIC = 1 << 16
MOST_RELOCATIONS = 1 << 26  # bytes
RELOCATIONS_AT_ONCE = 1 << 11
LONGEST_CHAIN = 4096  # symbols of one hash bucket
MOST_PROGRAM_HEADERS = 1024
_RELOCATION = struct.Struct("<QIIq")
PAGE = 4096
LARGEST_PAGE = 1 << 16  # of the processors that are read


class LoadedElf:
    """The object whose ELF header is at `base`; raises `ObjectFileError` or `MemoryUnreadable` if there is none."""

    def __init__(self, read: Read, base: int) -> None:
        self._read = read
        self.base = base
        self.header = parse_header(read(base, HEADER_SIZE), f"the memory at {base:#x}")

    @cached_property
    def program_headers(self) -> tuple[ProgramHeader, ...]:
        """The program headers, if they lie in the first page, where linkers put them; else ()."""
        count = min(self.header.program_count, MOST_PROGRAM_HEADERS)
        data = self._try(self.base + self.header.program_offset, count * PROGRAM_HEADER_SIZE)
        return parse_program_headers(data, self.header.order)

    @cached_property
    def segments(self) -> tuple[ProgramHeader, ...]:
        """The PT_LOADs in order of address."""
        return tuple(
            sorted(
                (header for header in self.program_headers if header.type == PT_LOAD), key=lambda header: header.vaddr
            )
        )

    @property
    def low(self) -> int:
        """The lowest vaddr, rounded down to a page."""
        return self.segments[0].vaddr & -PAGE if self.segments else 0

    @property
    def load_bias(self) -> int:
        """What was added to every vaddr."""
        return self.base - self.low

    @property
    def span(self) -> int:
        """Bytes from `base` to the end of the highest PT_LOAD."""
        return max((segment.end for segment in self.segments), default=0) - self.low

    def is_laid_out(self, size: int) -> bool:
        """Whether a loader has mapped it, if the mapping at `base` has `size` bytes.

        Who only reads a file, as debuggers do, has more of it in one mapping than its first segment.
        """
        first = self.segments[0].memory_size if self.segments else 0
        return size <= -(-first // LARGEST_PAGE) * LARGEST_PAGE

    @property
    def is_relocated(self) -> bool:
        """Whether glibc has mapped and zeroed all of it: it adds the bias in the dynamic section after that.

        Before, a variable's address may hold bytes of the file (elf/dl-map-segments.h, elf/get-dynamic-info.h).
        """
        return self.dynamic.get(DT_STRTAB, -1) >= self.load_bias

    @cached_property
    def build_id(self) -> bytes:
        """The build-id, b"" if there is none."""
        for header in self.program_headers:
            if header.type == PT_NOTE and header.memory_size <= LARGEST_NOTE:
                notes = self._try(self.load_bias + header.vaddr, header.memory_size)
                build_id = build_id_in(notes, self.header.order, header.align)
                if build_id:
                    return build_id
        return b""

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """The first value of each tag; addresses as the loader left them."""
        for header in self.program_headers:
            if header.type == PT_DYNAMIC and header.memory_size <= LARGEST_DYNAMIC:
                data = self._try(self.load_bias + header.vaddr, header.memory_size)
                return dict(reversed(parse_dynamic(data, self.header.order)))
        return {}

    def symbol(self, name: str) -> Optional[int]:
        """The address of a symbol that it defines in .dynsym, or None."""
        extent = self.symbol_extent(name)
        return extent[0] if extent is not None else None

    def symbol_extent(self, name: str) -> Optional[tuple[int, int]]:
        """The address and the size of a symbol that it defines in .dynsym, or None."""
        encoded = name.encode()
        extent = self._gnu_hash(encoded) if DT_GNU_HASH in self.dynamic else self._sysv_hash(encoded)
        return (self.load_bias + extent[0], extent[1]) if extent is not None else None

    def _try(self, address: int, size: int) -> bytes:
        try:
            return self._read(address, size)
        except MemoryUnreadable:
            return b""

    def _words(self, form: str, address: int) -> tuple[int, ...]:
        data = self._try(address, struct.calcsize(form))
        return struct.unpack(self.header.order + form, data) if data else ()

    def table(self, tag: int) -> int:
        """The address that a tag of the dynamic section means.

        glibc relocates most of them in place, others' loaders leave them alone.
        """
        value = self.dynamic.get(tag, 0)
        return value if value >= self.load_bias else value + self.load_bias

    def relocations(self) -> Iterator[tuple[int, int, int, int]]:
        """(r_offset, type, symbol, r_addend) of DT_RELA, none if its size makes no sense; raises `MemoryUnreadable`.

        Without the relative ones, which name no symbol and come first: DT_RELACOUNT says how many they are.
        """
        size = self.dynamic.get(DT_RELASZ, 0)
        relative = self.dynamic.get(DT_RELACOUNT, 0) * _RELOCATION.size
        if not 0 <= relative < size <= MOST_RELOCATIONS:
            return
        table, piece = self.table(DT_RELA), _RELOCATION.size * RELOCATIONS_AT_ONCE
        for at in range(relative, size - size % _RELOCATION.size, piece):
            data = self._read(table + at, min(piece, size - at))
            yield from _RELOCATION.iter_unpack(data[: len(data) - len(data) % _RELOCATION.size])

    def _gnu_hash(self, name: bytes) -> Optional[tuple[int, int]]:
        table = self.table(DT_GNU_HASH)
        head = self._words("IIII", table)
        if not head or not head[0]:
            return None
        buckets, first, bloom, _ = head
        hashed = gnu_hash(name)
        start = table + 16 + 8 * bloom
        bucket = self._words("I", start + 4 * (hashed % buckets))
        if not bucket or bucket[0] < first:
            return None
        for index in range(bucket[0], bucket[0] + LONGEST_CHAIN):
            chain = self._words("I", start + 4 * (buckets + index - first))
            if not chain:
                return None
            if chain[0] | 1 == hashed | 1:
                extent = self._defined(index, name)
                if extent is not None:
                    return extent
            if chain[0] & 1:
                return None
        return None

    def _sysv_hash(self, name: bytes) -> Optional[tuple[int, int]]:
        if DT_HASH not in self.dynamic:
            return None
        table = self.table(DT_HASH)
        head = self._words("II", table)
        if not head or not head[0]:
            return None
        words = self._words("I", table + 8 + 4 * (sysv_hash(name) % head[0]))
        for _ in range(LONGEST_CHAIN):
            if not words or not words[0]:
                return None
            value = self._defined(words[0], name)
            if value is not None:
                return value
            words = self._words("I", table + 8 + 4 * (head[0] + words[0]))
        return None

    def _defined(self, index: int, name: bytes) -> Optional[tuple[int, int]]:
        """The value and the size of symbol `index` if it is defined and has this name."""
        symbol = self._words("IBBHQQ", self.table(DT_SYMTAB) + SYMBOL_SIZE * index)
        if not symbol or symbol[3] == 0:
            return None
        is_it = self._try(self.table(DT_STRTAB) + symbol[0], len(name) + 1) == name + b"\0"
        return (symbol[4], symbol[5]) if is_it else None


def loaded_at(read: Read, base: int) -> Optional[LoadedElf]:
    """The object at `base`; None if no ELF header is there, or it can't be read."""
    try:
        return LoadedElf(read, base)
    except (ObjectFileError, MemoryUnreadable):
        return None


def exporters(read: Read, files: Iterable[MemoryMapping], name: str) -> Iterator[tuple[LoadedElf, int]]:
    """The objects that define a symbol in .dynsym, and its address; `files` are where objects begin."""
    for mapping in files:
        loaded = loaded_at(read, mapping.start)
        address = loaded.symbol(name) if loaded is not None else None
        if loaded is not None and address is not None:
            yield loaded, address


def gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def sysv_hash(name: bytes) -> int:
    """The hash of DT_HASH (gABI, "Hash Table")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


def build_id_in_maps(maps: Sequence[MemoryMapping], path: str, read: Read) -> Optional[bytes]:
    """The build-id of the ELF file `path` as it is mapped, or None."""
    for file in of_files(maps, path):
        if file.path == path and file.offset == 0 and file.readable:
            try:
                return LoadedElf(read, file.start).build_id or None
            except RanklensError:
                continue
    return None
