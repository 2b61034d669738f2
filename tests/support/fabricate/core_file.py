"""Writes core files: memory, threads with registers, and the table of mapped files, as Linux and GDB write them.

Takes Python values; gives bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.support.fabricate.elf_file import HEADER, PAGE, PROGRAM_HEADER, header, note, program_header

ET_CORE, PT_LOAD, PT_NOTE = 4, 1, 4
NT_PRSTATUS, NT_FILE = 1, 0x46494C45


@dataclass(frozen=True)
class Memory:
    """A PT_LOAD: `size` bytes of memory, of which the core file holds `data`."""

    start: int
    size: int
    data: bytes = b""
    flags: int = 6


@dataclass(frozen=True)
class File:
    """An entry of NT_FILE; `page` is the offset in the file in pages."""

    start: int
    end: int
    page: int
    path: str


@dataclass(frozen=True)
class Thread:
    tid: int
    pc: int
    sp: int


def core(
    memory: tuple[Memory, ...], files: tuple[File, ...] = (), threads: tuple[Thread, ...] = (), machine: int = 62
) -> bytes:
    notes = b"".join(prstatus(thread) for thread in threads) + (file_note(files) if files else b"")
    at = HEADER + PROGRAM_HEADER * (len(memory) + 1)
    headers = [program_header(PT_NOTE, 0, at, 0, len(notes), 0)]
    body = notes
    for one in memory:
        body += b"\0" * (-(at + len(body)) % PAGE)
        headers.append(program_header(PT_LOAD, one.flags, at + len(body), one.start, len(one.data), one.size))
        body += one.data
    return header(ET_CORE, len(headers), machine=machine) + b"".join(headers) + body


def prstatus(thread: Thread) -> bytes:
    """struct elf_prstatus: pr_pid at 32, pr_reg (27 words: rip is the 17th, rsp the 20th) at 112."""
    registers = [0] * 27
    registers[16], registers[19] = thread.pc, thread.sp
    content = struct.pack("<32xI76x27Q", thread.tid, *registers) + bytes(8)
    return note(b"CORE\0", NT_PRSTATUS, content)


def file_note(files: tuple[File, ...]) -> bytes:
    content = struct.pack("<QQ", len(files), PAGE)
    content += b"".join(struct.pack("<QQQ", file.start, file.end, file.page) for file in files)
    return note(b"CORE\0", NT_FILE, content + b"".join(file.path.encode() + b"\0" for file in files))
