"""The notes of a core file: kernel threads with their registers, the signal of the first, and the mapped files.

Takes the bytes of PT_NOTE segments; what is damaged or cut short is left out. It reads no memory and no file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional, Union

from pieglobalsfind.elf.file import parse_notes
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.model import Absent
from pieglobalsfind.target import KernelThread

NT_PRSTATUS = 1
NT_FILE = 0x46494C45
NT_AUXV, AT_PAGESZ = 6, 6
SMALLEST_PAGE, LARGEST_PAGE = 1 << 12, 1 << 16
NT_SIGINFO = 0x53494749
PRSTATUS_SIGNAL = 12  # struct elf_prstatus of a 64-bit Linux: pr_cursig, pr_sighold, pr_pid, pr_reg
PRSTATUS_BLOCKED = 24
PRSTATUS_PID = 32
PRSTATUS_REGISTERS = 112
SIGINFO_ADDRESS = 16  # siginfo_t of a 64-bit Linux: si_addr


class FileMapping(NamedTuple):
    """An entry of NT_FILE: [start, end) maps `path` from byte `offset` on."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True)
class FatalSignal:
    """The signal that thread `tid` got when the core file was written.

    `code` is si_code, `address` si_addr (which means something for faults alone), `blocked` the signals that the thread
    blocked, a bit each; 0 where the file does not say.
    """

    tid: int
    number: int
    code: int = 0
    address: int = 0
    blocked: int = 0


@dataclass(frozen=True)
class Notes:
    """What the notes tell; threads and files in the order of the file. `signal` is None if no thread got one.

    `page` is the size of the process's pages.
    """

    threads: tuple[KernelThread, ...]
    files: tuple[FileMapping, ...]
    signal: Optional[FatalSignal] = None
    page: int = SMALLEST_PAGE


def read_notes(parts: Iterable[bytes], order: str, machine: int) -> Notes:
    """Threads, the first thread's signal, file mappings and the size of pages of all PT_NOTE segments."""
    threads: list[KernelThread] = []
    files: list[FileMapping] = []
    signal: Optional[FatalSignal] = None
    page = SMALLEST_PAGE
    for data in parts:
        for owner, kind, description in parse_notes(data, order):
            if owner == b"CORE" and kind == NT_PRSTATUS and len(description) >= PRSTATUS_PID + 4:
                threads.append(_thread(description, order, machine))
                signal = signal or _signal(description, order)
            elif owner == b"CORE" and kind == NT_SIGINFO and signal is not None and not signal.code:
                signal = _with_address(signal, description, order) if len(threads) <= 1 else signal
            elif owner == b"CORE" and kind == NT_FILE:
                files += _files(description, order)
            elif owner == b"CORE" and kind == NT_AUXV:
                page = _page_size(description, order)
    return Notes(tuple(threads), tuple(files), signal, page)


def _page_size(vector: bytes, order: str) -> int:
    """What the auxiliary vector says, the smallest if it says nothing that can be."""
    words = struct.iter_unpack(order + "QQ", vector[: len(vector) // 16 * 16])
    size = next((value for kind, value in words if kind == AT_PAGESZ), 0)
    is_possible = SMALLEST_PAGE <= size <= LARGEST_PAGE and not size & (size - 1)
    return size if is_possible else SMALLEST_PAGE


def _signal(prstatus: bytes, order: str) -> Optional[FatalSignal]:
    """None for a thread that had none. The kernel writes the thread that got the signal first."""
    (number,) = struct.unpack_from(order + "h", prstatus, PRSTATUS_SIGNAL)
    (tid,) = struct.unpack_from(order + "I", prstatus, PRSTATUS_PID)
    (blocked,) = struct.unpack_from(order + "Q", prstatus, PRSTATUS_BLOCKED)
    return FatalSignal(tid, number, blocked=blocked) if number > 0 else None


def _with_address(signal: FatalSignal, siginfo: bytes, order: str) -> FatalSignal:
    if len(siginfo) < SIGINFO_ADDRESS + 8:
        return signal
    number, _, code = struct.unpack_from(order + "iii", siginfo)
    (address,) = struct.unpack_from(order + "Q", siginfo, SIGINFO_ADDRESS)
    return replace(signal, code=code, address=address) if number == signal.number else signal


def _thread(data: bytes, order: str, machine: int) -> KernelThread:
    tid = struct.unpack_from(order + "I", data, PRSTATUS_PID)[0]
    return KernelThread(tid, _registers(data, order, machine))


def _registers(data: bytes, order: str, machine: int) -> Union[Mapping[int, int], Absent]:
    processor = PROCESSORS.get(machine)
    layout = processor.kernel_registers if processor is not None else ()
    if not layout or len(data) < PRSTATUS_REGISTERS + 8 * len(layout):
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
