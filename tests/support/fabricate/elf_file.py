"""Writes small ELF files, whole or damaged, byte by byte as the generic ABI lays them out.

Takes segments, symbols and notes as Python values; gives bytes. The reader's own tables are not used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

PAGE = 4096
HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL = 64, 56, 64, 24


@dataclass(frozen=True)
class Symbol:
    """An entry of .symtab; `info` is binding << 4 | type, `section` 1 is .text, 2 is .data."""

    name: str
    value: int
    size: int
    info: int = 0x12
    section: int = 1


def note(owner: bytes, kind: int, description: bytes) -> bytes:
    """A note whose fields are padded to 4 bytes."""
    padded = owner + b"\0" * (-len(owner) % 4), description + b"\0" * (-len(description) % 4)
    return struct.pack("<III", len(owner), len(description), kind) + b"".join(padded)


def header(kind: int, count: int, sections: int = 0, section_offset: int = 0, machine: int = 62) -> bytes:
    """The ELF header; program headers follow it at once. PN_XNUM (0xffff) stands for more than it can count."""
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    names = max(sections - 1, 0)
    count = min(count, 0xFFFF)
    fields = (kind, machine, 1, 0, HEADER, section_offset, 0, HEADER, PROGRAM_HEADER, count, SECTION_HEADER)
    return ident + struct.pack("<HHIQQQIHHHHHH", *fields, sections, names)


def program_header(kind: int, flags: int, offset: int, vaddr: int, file_size: int, memory_size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, offset, vaddr, vaddr, file_size, memory_size, PAGE)


def shared_object(symbols: tuple[Symbol, ...] = (), build_id: bytes = b"\x11" * 20) -> bytes:
    """An ET_DYN with headers and notes at 0, .text at 0x1000, .data at 0x2000 (0x800 bytes, 0x1000 in memory)."""
    notes = note(b"GNU\0", 3, build_id) if build_id else b""
    strings = b"\0" + b"".join(symbol.name.encode() + b"\0" for symbol in symbols)
    offsets = [1 + sum(len(symbol.name.encode()) + 1 for symbol in symbols[:i]) for i in range(len(symbols))]
    table = bytes(SYMBOL) + b"".join(
        struct.pack("<IBBHQQ", at, one.info, 0, one.section, one.value, one.size) for at, one in zip(offsets, symbols)
    )
    names = b"\0.text\0.data\0.symtab\0.strtab\0.shstrtab\0"
    start = 3 * PAGE
    tables = start, start + len(table), start + len(table) + len(strings)
    sections = [
        bytes(SECTION_HEADER),
        section(1, 1, 6, 0x1000, PAGE, PAGE),
        section(7, 1, 3, 0x2000, 2 * PAGE, 0x800),
        section(13, 2, 0, 0, tables[0], len(table), 4, SYMBOL),
        section(21, 3, 0, 0, tables[1], len(strings)),
        section(29, 3, 0, 0, tables[2], len(names)),
    ]
    programs = [
        program_header(1, 4, 0, 0, 0x400, 0x400),
        program_header(1, 5, PAGE, 0x1000, PAGE, PAGE),
        program_header(1, 6, 2 * PAGE, 0x2000, 0x800, 0x1000),
        program_header(4, 4, 0x200, 0x200, len(notes), len(notes)),
    ]
    end = tables[2] + len(names)
    head = header(3, len(programs), len(sections), end) + b"".join(programs)
    body = head.ljust(0x200, b"\0") + notes
    return body.ljust(start, b"\x90") + table + strings + names + b"".join(sections)


def section(
    name: int, kind: int, flags: int, address: int, offset: int, size: int, link: int = 0, entry: int = 0
) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, 0, 1, entry)
