"""The symbols of one ELF file as a table sorted by address: the name that covers a vaddr.

Takes an open `ElfFile`; reads .symtab, or .dynsym where a file is stripped. It knows no debug information.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.elf import ElfFile, Section, string_at
from pieglobalsfind.errors import ObjectFileError

SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 5, 6, 10
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
_NAMED = (STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_GNU_IFUNC)
_BY_BINDING = {1: 0, 10: 0, 2: 1, 0: 2}  # global and unique, then weak, then local
_ENTRY_SIZE = 24


@dataclass(frozen=True)
class FileSymbol:
    """`name` is the linkage name, `start` a vaddr; `size` 0: the symbol does not say."""

    name: str
    start: int
    size: int


class SymbolTable:
    """The symbols of a file that can name an address."""

    def __init__(self, elf: ElfFile) -> None:
        found = sorted(self._candidates(elf), key=lambda one: one[:3])
        self._symbols: list[FileSymbol] = []
        for start, _, _, size, name in found:
            if not self._symbols or self._symbols[-1].start != start:
                self._symbols.append(FileSymbol(name, start, size))
        self._starts = [one.start for one in self._symbols]

    def _candidates(self, elf: ElfFile) -> Iterator[tuple[int, int, int, int, str]]:
        """(start, rank of its kind, rank of its binding, size, name): the best name of an address sorts first."""
        tables = [one for one in elf.sections if one.type == SHT_SYMTAB]
        for table in tables or [one for one in elf.sections if one.type == SHT_DYNSYM]:
            yield from self._entries(elf, table)

    def _entries(self, elf: ElfFile, table: Section) -> Iterator[tuple[int, int, int, int, str]]:
        if table.entry_size != _ENTRY_SIZE or table.link >= len(elf.sections):
            raise ObjectFileError(f"{elf.path} is damaged: its symbol table makes no sense")
        strings = elf.section_bytes(elf.sections[table.link])
        content = elf.section_bytes(table)
        whole = len(content) // _ENTRY_SIZE * _ENTRY_SIZE
        for name, info, _, section, value, size in struct.iter_unpack(elf.header.order + "IBBHQQ", content[:whole]):
            kind = info & 15
            if section in (SHN_UNDEF, SHN_ABS) or kind not in _NAMED or not name:
                continue
            text = string_at(strings, name)
            if text and not (kind == STT_NOTYPE and text.startswith(("$", ".L"))):
                yield value, kind == STT_NOTYPE, _BY_BINDING.get(info >> 4, 3), size, text

    def at(self, vaddr: int) -> Optional[FileSymbol]:
        """The symbol that covers a vaddr; one without a size covers what comes before the next symbol."""
        index = bisect_right(self._starts, vaddr) - 1
        # a shorter symbol may stand within a longer one: look back over those that end too early
        for _ in range(16):
            if index < 0:
                return None
            one = self._symbols[index]
            if one.size == 0 or vaddr < one.start + one.size:
                return one
            index -= 1
        return None
