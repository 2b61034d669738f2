"""Where a file's own, unexported variables are: a few names looked up in its `.symtab` at once.

Takes an open file and names; gives vaddrs and sizes. No index is made: it is quick on files of any size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from pieglobalsfind.elf.file import SHT_SYMTAB, SYMBOL_SIZE, ElfFile


def symbols(
    elf: ElfFile, bias: int, names: Iterable[str], section_type: int = SHT_SYMTAB
) -> dict[str, tuple[int, int]]:
    """The (address, size) of those names that a table of symbols has; `bias` is added to their values."""
    for table in elf.sections:
        if table.type == section_type and table.link < len(elf.sections):
            strings = elf.section_bytes(elf.sections[table.link])
            places = {at: name for name in names for at in _ends(strings, name.encode() + b"\0")}
            data = elf.section_bytes(table)
            rows = struct.iter_unpack("<IIQQ", data[: len(data) - len(data) % SYMBOL_SIZE])
            return {places[name]: (bias + value, size) for name, _, value, size in rows if name in places}
    return {}


def _ends(strings: bytes, name: bytes) -> Iterator[int]:
    """Wherever a name is, or a longer one ends with it: linkers let names share their ends."""
    at = strings.find(name)
    while at >= 0:
        yield at
        at = strings.find(name, at + 1)
