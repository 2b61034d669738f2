"""The notes of a core file: kernel threads with their registers, and which files were mapped where.

Takes the bytes of PT_NOTE segments; what is damaged or cut short is left out. It reads no memory and no file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Union

from pieglobalsfind.elf.file import EM_AARCH64, EM_X86_64, parse_notes
from pieglobalsfind.model import Absent
from pieglobalsfind.target import KernelThread

NT_PRSTATUS = 1
NT_FILE = 0x46494C45
PRSTATUS_PID = 32  # struct elf_prstatus of a 64-bit Linux: pr_pid, pr_reg
PRSTATUS_REGISTERS = 112

# struct user_regs_struct (sys/user.h) in the kernel's order, as DWARF numbers (x86-64 psABI, figure 3.36); -1: none
X86_64 = (15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7)
# struct user_pt_regs: x0 to x30, sp, pc (DWARF for the Arm 64-bit Architecture, 4.1; 32 is pc as GDB numbers it)
AARCH64 = tuple(range(33))
LAYOUTS = {EM_X86_64: X86_64, EM_AARCH64: AARCH64}


@dataclass(frozen=True)
class FileMapping:
    """An entry of NT_FILE: [start, end) maps `path` from byte `offset` on."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True)
class Notes:
    """What the notes tell; both in the order of the file."""

    threads: tuple[KernelThread, ...]
    files: tuple[FileMapping, ...]


def read_notes(parts: Iterable[bytes], order: str, machine: int) -> Notes:
    """Threads and file mappings of all PT_NOTE segments."""
    threads: list[KernelThread] = []
    files: list[FileMapping] = []
    for data in parts:
        for owner, kind, description in parse_notes(data, order):
            if owner == b"CORE" and kind == NT_PRSTATUS and len(description) >= PRSTATUS_PID + 4:
                threads.append(_thread(description, order, machine))
            elif owner == b"CORE" and kind == NT_FILE:
                files += _files(description, order)
    return Notes(tuple(threads), tuple(files))


def _thread(data: bytes, order: str, machine: int) -> KernelThread:
    tid = struct.unpack_from(order + "I", data, PRSTATUS_PID)[0]
    return KernelThread(tid, _registers(data, order, machine))


def _registers(data: bytes, order: str, machine: int) -> Union[Mapping[int, int], Absent]:
    layout = LAYOUTS.get(machine)
    if layout is None or len(data) < PRSTATUS_REGISTERS + 8 * len(layout):
        return Absent("the core file does not hold its registers in a known form")
    values = struct.unpack_from(f"{order}{len(layout)}Q", data, PRSTATUS_REGISTERS)
    return {number: value for number, value in zip(layout, values) if number >= 0}


def _files(data: bytes, order: str) -> list[FileMapping]:
    """NT_FILE: count, page size, count times (start, end, offset in pages), then the paths (core(5))."""
    if len(data) < 16:
        return []
    count, page = struct.unpack_from(order + "QQ", data)
    count = min(count, (len(data) - 16) // 24)
    paths = data[16 + 24 * count :].split(b"\0")
    entries = struct.iter_unpack(order + "QQQ", data[16 : 16 + 24 * count])
    return [
        FileMapping(start, end, offset * page, path.decode("utf-8", "surrogateescape"))
        for (start, end, offset), path in zip(entries, paths)
        if start < end and offset * page < 1 << 64
    ]
