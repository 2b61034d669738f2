"""Section headers of an ELF file on the disk, with where they stand in it: what views are made by.

Takes a path; gives `SectionHeader`s. ELF-64, little-endian (System V gABI, chapter 4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pieglobalsfind.errors import ObjectFileError

SHN_XINDEX = 0xFFFF

_IDENT = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")


class SectionHeader(NamedTuple):
    """One section header; `at` is its position in the file."""

    at: int
    name: bytes
    kind: int
    flags: int
    offset: int
    size: int


def read_sections(path: str) -> Iterator[SectionHeader]:
    """The section headers of an ELF file; raises `ObjectFileError` if they make no sense."""
    with open(path, "rb") as file:
        header = file.read(64)
        if not header.startswith(_IDENT) or len(header) < 64:
            raise ObjectFileError(f"{path} is no 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", header, 40)
        entry_size, count, names = struct.unpack_from("<HHH", header, 58)
        if not table or not count or entry_size != _SECTION.size or names == SHN_XINDEX:
            return
        file.seek(table)
        content = file.read(count * entry_size)
        if len(content) < count * entry_size or names >= count:
            raise ObjectFileError(f"{path} is damaged: its section headers lie outside the file")
        headers = [_SECTION.unpack_from(content, index * entry_size) for index in range(count)]
        file.seek(headers[names][4])
        strings = file.read(min(headers[names][5], 1 << 20))
    for index, one in enumerate(headers):
        name = strings[one[0] : strings.find(b"\0", one[0])] if one[0] < len(strings) else b""
        yield SectionHeader(table + index * entry_size, name, one[1], one[2], one[4], one[5])
