"""Places of thread-local variables by their symbols: GCC for AArch64 writes none into debug information.

Takes a file's path; gives offsets in the file's block. Symbols are read when the first place is asked for. A variable
of one source file is found by that file's name, too; where two files and their variables have the same names, neither.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import Optional

from pieglobalsfind.dwarf.libdw.bindings import LONGEST_STRING
from pieglobalsfind.elf.file import SYMBOL_SIZE, ElfFile
from pieglobalsfind.elf.locate import debug_path
from pieglobalsfind.elf.symbol_table import SHN_UNDEF, STB_LOCAL, STT_FILE, STT_TLS, symbol_sections
from pieglobalsfind.errors import ObjectFileError

MOST_TEXT = 1 << 24  # characters of names in all: a damaged file's may overlap
EXTERNAL = "/"  # in place of a source file's name

Key = tuple[str, str]  # the source file and the linkage name


class ThreadLocalSymbols:
    """The file's symbols of thread-local variables; none if they can't be read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def offset(self, source: str, linkage_name: str) -> Optional[int]:
        """Where the variable lies in the block, None if no symbol says so or two do; `source` may be `EXTERNAL`."""
        return self._offsets.get((source, linkage_name))

    @cached_property
    def _offsets(self) -> dict[Key, Optional[int]]:
        offsets: dict[Key, Optional[int]] = {}
        try:
            for key, offset in self._read():
                offsets[key] = None if offsets.get(key, offset) != offset else offset
        except ObjectFileError:
            return {}
        return offsets

    def _read(self) -> Iterator[tuple[Key, int]]:
        with ExitStack() as opened:
            elf = opened.enter_context(ElfFile(self._path))
            if elf.tls is None:
                return
            place = debug_path(elf) if elf.section(".symtab") is None else None
            debug = opened.enter_context(ElfFile(place)) if place is not None else None
            for data, strings in symbol_sections(elf, debug):
                for key, offset in _thread_local(data, strings, elf.header.order):
                    if offset < elf.tls.memory_size:
                        yield key, offset


def _thread_local(data: bytes, strings: bytes, order: str) -> Iterator[tuple[Key, int]]:
    """What each symbol is for: a file's own follow the file's name (System V gABI, chapter 4)."""
    source, left = "", MOST_TEXT
    whole = len(data) - len(data) % SYMBOL_SIZE
    for start, info, _, section, value, _ in struct.iter_unpack(order + "IBBHQQ", data[:whole]):
        kind, binding = info & 15, info >> 4
        if kind not in (STT_FILE, STT_TLS) or section == SHN_UNDEF:
            continue
        name = strings[start : max(strings.find(b"\0", start, start + LONGEST_STRING), start)].decode(
            "utf-8", "replace"
        )
        left -= len(name)
        if left < 0:
            return
        if kind == STT_FILE:
            source = name.rpartition("/")[2]
        elif binding != STB_LOCAL:
            yield (EXTERNAL, name.partition("@")[0]), value
        elif source:
            yield (source, name), value
