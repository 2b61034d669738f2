"""The symbols of one ELF file as sorted arrays: which symbol covers a vaddr, or an offset in thread-local storage.

Takes an open `ElfFile`, and its separate debug file where symbols were stripped; can be kept as bytes. It knows no
debug information and no process, and gives linkage names as they are.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Optional

from pieglobalsfind.elf.file import (
    DT_GNU_HASH,
    DT_HASH,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_SYMTAB,
    SYMBOL_SIZE,
    ElfFile,
    Section,
)
from pieglobalsfind.errors import ObjectFileError

KIND = f"symbols-2-{sys.byteorder}"  # changes with the form of `Symbols.encode`

STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_FILE, STT_COMMON, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 4, 5, 6, 10
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
STB_LOCAL = 0
NAMED = (STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_GNU_IFUNC)
BINDINGS = {1: 3, 10: 3, 0: 2, 2: 1}  # global and unique before local before weak
# Linkers' marks of where a section begins or ends; what lies there has another name, or none.
MARKS = {b"_end", b"end", b"_edata", b"edata", b"__bss_start", b"_etext", b"etext", b"data_start", b"__data_start"}
MARKS |= {b"__TMC_END__", b"__bss_start__", b"_bss_end__", b"__bss_end__", b"__end__"}


@dataclass(frozen=True)
class FileSymbol:
    """`name` is the linkage name, `start` a vaddr (an offset for thread-local ones); `size` 0: it does not say."""

    name: str
    start: int
    size: int


class SymbolTable:
    """Symbols in ascending order; of those that begin at the same place, the best name comes last."""

    def __init__(self, starts: array[int], ends: array[int], sizes: array[int], names: array[int], text: bytes) -> None:
        self._starts = starts
        self._ends = ends
        self._sizes = sizes
        self._names = names
        self._text = text

    @cached_property
    def _reach(self) -> array[int]:
        """How far any symbol up to each one reaches."""
        return array("Q", accumulate(self._ends, max))

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[FileSymbol]:
        """The best symbol of every place at which one begins, ascending."""
        for index in range(len(self._starts)):
            if index + 1 == len(self._starts) or self._starts[index + 1] != self._starts[index]:
                yield self._symbol(index)

    def at(self, place: int) -> Optional[FileSymbol]:
        """The innermost symbol that covers a place."""
        index = bisect_right(self._starts, place) - 1
        if index >= 0 and place < self._ends[index]:  # mostly: how far others reach is not asked for
            return self._symbol(index)
        while index >= 0 and self._reach[index] > place:
            if place < self._ends[index]:
                return self._symbol(index)
            index -= 1
        return None

    def named(self, name: str) -> Optional[FileSymbol]:
        """The first symbol of this linkage name."""
        wanted = name.encode()
        for index in range(len(self._starts)):
            start = self._names[index]
            if self._text.startswith(wanted + b"\0", start):
                return self._symbol(index)
        return None

    def _symbol(self, index: int) -> FileSymbol:
        start = self._names[index]
        name = self._text[start : self._text.index(b"\0", start)]
        return FileSymbol(name.decode("utf-8", "replace"), self._starts[index], self._sizes[index])

    def encode(self) -> bytes:
        """As bytes, in this machine's byte order."""
        arrays = (self._starts, self._ends, self._sizes, self._names)
        head = struct.pack("=QQ", len(self._starts), len(self._text))
        return b"".join([head, *(column.tobytes() for column in arrays), self._text])

    @classmethod
    def decode(cls, data: bytes) -> SymbolTable:
        """What `encode` made; raises `ValueError` for anything else."""
        if len(data) < 16:
            raise ValueError("no symbols")
        count, text_size = struct.unpack_from("=QQ", data)
        if len(data) != 16 + 28 * count + text_size:
            raise ValueError("no symbols")
        starts, ends, sizes, names = array("Q"), array("Q"), array("Q"), array("I")
        at = 16
        for column in (starts, ends, sizes, names):
            column.frombytes(data[at : at + count * column.itemsize])
            at += count * column.itemsize
        text = data[at:]
        if count and (max(names) >= text_size or not text.endswith(b"\0")):
            raise ValueError("no symbols")
        return cls(starts, ends, sizes, names, text)


@dataclass(frozen=True)
class Symbols:
    """A file's symbols by vaddr, and its thread-local ones by their offset in the object's block."""

    addresses: SymbolTable
    tls: SymbolTable

    def encode(self) -> bytes:
        """Return the symbols as bytes for the cache."""
        first = self.addresses.encode()
        return struct.pack("=Q", len(first)) + first + self.tls.encode()

    @classmethod
    def decode(cls, data: bytes) -> Symbols:
        """What `encode` made; raises `ValueError` for anything else."""
        if len(data) < 8:
            raise ValueError("no symbols")
        split = 8 + struct.unpack_from("=Q", data)[0]
        return cls(SymbolTable.decode(data[8:split]), SymbolTable.decode(data[split:]))


# (start, size, preference, name): preference counts among symbols at the same place
Candidate = tuple[int, int, int, bytes]


def read_symbols(elf: ElfFile, debug: Optional[ElfFile] = None) -> Symbols:
    """Of .symtab (the debug file's if `elf` is stripped), else of .dynsym; raises `ObjectFileError` if damaged."""
    addresses: list[Candidate] = []
    tls: list[Candidate] = []
    for data, strings in symbol_sections(elf, debug):
        for value, size, info, name in _entries(data, strings, elf.header.order):
            kind, binding = info & 15, BINDINGS.get(info >> 4, 0)
            if kind == STT_TLS:
                tls.append((value, size, binding, name))
            elif kind in NAMED and not _is_mark(kind, name):
                addresses.append((value, size, binding + 4 * (kind != STT_NOTYPE) + 8 * (size > 0), name))
    return Symbols(_sorted_table(addresses, _extents(elf)), _sorted_table(tls, []))


def symbol_sections(elf: ElfFile, debug: Optional[ElfFile]) -> Iterator[tuple[bytes, bytes]]:
    """Entries and strings of the tables to use; `debug` is the separate debug file of a stripped one."""
    for file in (elf, debug):
        full = [section for section in file.sections if section.type == SHT_SYMTAB] if file else []
        if file is not None and full:
            yield from (_section_table(file, section) for section in full)
            return
    exported = [section for section in elf.sections if section.type == SHT_DYNSYM]
    if exported:
        yield from (_section_table(elf, section) for section in exported)
    elif elf.dynamic_value(DT_SYMTAB) is not None:
        yield _dynamic_table(elf)


def _section_table(elf: ElfFile, table: Section) -> tuple[bytes, bytes]:
    if table.link >= len(elf.sections):
        raise ObjectFileError(f"{elf.path} is damaged, its symbols have no names")
    return elf.section_bytes(table), elf.section_bytes(elf.sections[table.link])


def _dynamic_table(elf: ElfFile) -> tuple[bytes, bytes]:
    """The table of a file without section headers: how long it is, only the hash tables tell."""
    start, strings = elf.dynamic_value(DT_SYMTAB) or 0, elf.dynamic_value(DT_STRTAB) or 0
    return elf.at(start, SYMBOL_SIZE * _dynamic_count(elf)), elf.at(strings, elf.dynamic_value(DT_STRSZ) or 0)


def _dynamic_count(elf: ElfFile) -> int:
    order = elf.header.order
    table = elf.dynamic_value(DT_HASH)
    if table is not None:
        count: int = struct.unpack(order + "4xI", elf.at(table, 8))[0]
        return count
    table = elf.dynamic_value(DT_GNU_HASH)
    if table is None:
        return 0
    buckets, first, bloom, _ = struct.unpack(order + "IIII", elf.at(table, 16))
    chains = table + 16 + 8 * bloom + 4 * buckets
    index = max(struct.unpack(f"{order}{buckets}I", elf.at(chains - 4 * buckets, 4 * buckets)), default=0)
    if index < first:
        return int(first)
    while struct.unpack(order + "I", elf.at(chains + 4 * (index - first), 4))[0] & 1 == 0:
        index += 1
    return int(index) + 1


def _entries(data: bytes, strings: bytes, order: str) -> Iterator[tuple[int, int, int, bytes]]:
    """(value, size, info, name) of what is defined at an address and has a name."""
    whole = len(data) - len(data) % SYMBOL_SIZE
    for offset, info, _, section, value, size in struct.iter_unpack(order + "IBBHQQ", data[:whole]):
        if section in (SHN_UNDEF, SHN_ABS) or not offset:
            continue
        end = strings.find(b"\0", offset)
        name = strings[offset:end].partition(b"@")[0]  # read@@GLIBC_2.2.5
        if end > offset and name:
            yield value, size, info, name


def _is_mark(kind: int, name: bytes) -> bool:
    return kind == STT_NOTYPE and (name in MARKS or name.startswith((b"$", b".L")))


def _extents(elf: ElfFile) -> list[tuple[int, int]]:
    """[start, end) of the sections (else of the segments) that a symbol without size may cover, ascending."""
    code = SHF_ALLOC | SHF_EXECINSTR
    ranges = [
        (section.address, section.address + section.size) for section in elf.sections if section.flags & code == code
    ]
    ranges += [
        (section.address, section.address + section.size)
        for section in elf.sections
        if section.flags & code == SHF_ALLOC
    ]
    return sorted(ranges or [(segment.vaddr, segment.end) for segment in elf.segments])


def _sorted_table(candidates: Iterable[Candidate], extents: Sequence[tuple[int, int]]) -> SymbolTable:
    kept = list(_best(sorted(candidates, key=lambda candidate: candidate[:3])))
    starts = [symbol[0] for symbol in kept]
    bounds = [start for start, _ in extents]
    ends = [
        min(start + size, (1 << 64) - 1) if size else _end_of(start, starts, extents, bounds)
        for start, size, _, _ in kept
    ]
    text = b"\0".join(symbol[3] for symbol in kept) + b"\0"
    offsets = accumulate((len(symbol[3]) + 1 for symbol in kept[:-1]), initial=0)
    names = array("I", offsets if kept else ())
    return SymbolTable(array("Q", starts), array("Q", ends), array("Q", (symbol[1] for symbol in kept)), names, text)


def _best(ordered: Sequence[Candidate]) -> Iterator[Candidate]:
    """Without names that a better one at the same place covers, or that stand within a symbol and have no size."""
    reach = 0
    at = 0
    while at < len(ordered):
        start = ordered[at][0]
        end = at
        while end < len(ordered) and ordered[end][0] == start:
            end += 1
        group = sorted(ordered[at:end], key=lambda symbol: symbol[2], reverse=True)
        same: list[Candidate] = []
        largest = -1
        for candidate in group:
            if candidate[1] > largest and (candidate[1] or start >= reach):
                same.append(candidate)
                largest = candidate[1]
        yield from reversed(same)
        reach = max(reach, start + max(largest, 0))
        at = end


def _end_of(start: int, starts: Sequence[int], extents: Sequence[tuple[int, int]], bounds: Sequence[int]) -> int:
    """Where a symbol without size ends: at the next symbol, or with its section."""
    following = bisect_left(starts, start + 1)
    end = starts[following] if following < len(starts) else (1 << 64) - 1
    section = bisect_right(bounds, start) - 1
    if section < 0 or start >= extents[section][1]:
        return start
    return min(end, extents[section][1])
