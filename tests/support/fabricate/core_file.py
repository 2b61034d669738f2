"""Writes core files: memory, threads with registers, and the table of mapped files, as Linux and GDB write them.

Takes Python values; gives bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.support.fabricate.elf_file import HEADER, PAGE, PROGRAM_HEADER, header, note, program_header

ET_CORE, PT_LOAD, PT_NOTE = 4, 1, 4
NT_PRSTATUS, NT_AUXV, NT_FILE = 1, 6, 0x46494C45


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
    memory: tuple[Memory, ...],
    files: tuple[File, ...] = (),
    threads: tuple[Thread, ...] = (),
    machine: int = 62,
    vector: tuple[tuple[int, int], ...] = (),
) -> bytes:
    """`vector` is the auxiliary vector, without its end."""
    notes = b"".join(prstatus(thread, machine) for thread in threads) + (file_note(files) if files else b"")
    if vector:
        notes += note(b"CORE\0", NT_AUXV, b"".join(struct.pack("<QQ", *pair) for pair in (*vector, (0, 0))))
    at = HEADER + PROGRAM_HEADER * (len(memory) + 1)
    headers = [program_header(PT_NOTE, 0, at, 0, len(notes), 0)[:-8] + struct.pack("<Q", 4)]  # GDB reads no others
    body = notes
    for one in memory:
        body += b"\0" * (-(at + len(body)) % PAGE)
        headers.append(program_header(PT_LOAD, one.flags, at + len(body), one.start, len(one.data), one.size))
        body += one.data
    return header(ET_CORE, len(headers), machine=machine) + b"".join(headers) + body


NT_ARM_PAC_MASK, SIGNED_BITS = 0x406, 0x7F << 48  # AArch64's pointer authentication with addresses of 48 bits
# By ELF machine: words of pr_reg, and which of them are the pc and the stack pointer (<sys/user.h>; <asm/ptrace.h>)
REGISTERS = {62: (27, 16, 19), 183: (34, 32, 31)}


def prstatus(thread: Thread, machine: int = 62) -> bytes:
    """struct elf_prstatus: pr_pid at 32, pr_reg at 112."""
    count, pc, sp = REGISTERS[machine]
    registers = [0] * count
    registers[pc], registers[sp] = thread.pc, thread.sp
    content = struct.pack(f"<32xI76x{count}Q", thread.tid, *registers) + bytes(8)
    masks = note(b"LINUX\0", NT_ARM_PAC_MASK, struct.pack("<QQ", SIGNED_BITS, SIGNED_BITS))
    return note(b"CORE\0", NT_PRSTATUS, content) + (masks if machine == 183 else b"")


def file_note(files: tuple[File, ...]) -> bytes:
    content = struct.pack("<QQ", len(files), PAGE)
    content += b"".join(struct.pack("<QQQ", file.start, file.end, file.page) for file in files)
    return note(b"CORE\0", NT_FILE, content + b"".join(file.path.encode() + b"\0" for file in files))
