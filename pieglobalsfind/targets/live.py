"""A running process of this machine, seen through /proc and process_vm_readv, without stopping it.

Takes a pid. It never attaches, never signals, never writes; two reads may be of different moments.
"""

from __future__ import annotations

import ctypes
import errno
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Union

from pieglobalsfind.elf.loaded import build_id_in_maps
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, TargetEndedError, TargetError
from pieglobalsfind.machine.lookup import of_kernel
from pieglobalsfind.model import Absent
from pieglobalsfind.ranges import place_of
from pieglobalsfind.target import PIECE, KernelThread, read_or_none
from pieglobalsfind.targets.procfs import Process

LARGEST_READ = 0x7FFFF000  # bytes; the most that the kernel transfers in one call
CHECKED_READ = 1 << 20  # bytes; the map is asked before a buffer larger than this is made
MOST_VECTORS = 1024  # UIO_MAXIOV of <linux/uio.h>
MOST_TOGETHER = 1 << 26  # bytes of a buffer for many of them
TOP = 1 << 64


class IoVector(ctypes.Structure):
    """struct iovec of process_vm_readv(2)."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


@lru_cache(maxsize=1)
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.process_vm_readv.restype = ctypes.c_ssize_t
    library.process_vm_readv.argtypes = [
        ctypes.c_int,
        ctypes.POINTER(IoVector),
        ctypes.c_ulong,
        ctypes.POINTER(IoVector),
        ctypes.c_ulong,
        ctypes.c_ulong,
    ]
    return library


# Documented C API: bytes that no other code has seen yet may be filled in place.
_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes, _new_bytes.restype = [ctypes.c_char_p, ctypes.c_ssize_t], ctypes.py_object
_address_of = ctypes.pythonapi.PyBytes_AsString
_address_of.argtypes, _address_of.restype = [ctypes.py_object], ctypes.c_void_p


def sparse_bytes(address: int, size: int, parts: Iterable[tuple[int, int]], read: Callable[[int, int], bytes]) -> bytes:
    """Return `size` bytes from `address`: what `read` gives of the parts, and zeros that take no memory between them.

    Raises `MemoryUnreadable` if a part lies outside.
    """
    data = bytes(size)  # zeros that take no memory before something is written there
    place = _address_of(data)
    for first, last in parts:
        if not address <= first < last <= address + size:
            raise MemoryUnreadable(address, size, "the kernel reports pages outside of it")
        for start in range(first, last, PIECE):
            part = read(start, min(PIECE, last - start))
            ctypes.memmove(place + start - address, part, len(part))
    return data


class LiveTarget(Process):
    """A process. Raises `TargetError` if it is not there, has ended, or may not be read by us."""

    def __init__(self, pid: int) -> None:
        self._memory_file = -1
        super().__init__(pid)
        self._identities: dict[str, Optional[bytes]] = {}
        self._known_maps: list[tuple[int, int]] = []
        self._check_readable()

    def __del__(self) -> None:
        descriptor, self._memory_file = getattr(self, "_memory_file", -1), -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def is_live(self) -> bool:
        """Return whether the target can change."""
        return True

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes, as of now."""
        if address < 0 or size < 0 or address + size > TOP:
            raise MemoryUnreadable(address, size, "there are no such addresses")
        if size > LARGEST_READ:
            raise MemoryUnreadable(address, size, "that is more than can be read at once")
        if size > CHECKED_READ:
            return self._read_large(address, size)
        if size == 0:
            return b""
        return self._read_by_call(address, size) if self._memory_file < 0 else self._read_by_file(address, size)

    def _read_large(self, address: int, size: int) -> bytes:
        """Without the pages that the process never touched: a read would give it page tables for them."""
        if not self._is_mapped(address, size):
            raise MemoryUnreadable(address, size)
        backed = self.backed(address, address + size)
        if self._memory_file >= 0 or backed == [(address, address + size)]:
            return self._read_by_file(address, size) if self._memory_file >= 0 else self._read_by_call(address, size)
        return sparse_bytes(address, size, backed, self._read_by_call)

    def _is_mapped(self, address: int, size: int) -> bool:
        """By a map that was read before; if that does not have it, by the map as it is now."""
        if not covered(self._known_maps, address, size):
            self._known_maps = [(mapping.start, mapping.end) for mapping in self.maps()]
        return covered(self._known_maps, address, size)

    def _read_by_call(self, address: int, size: int) -> bytes:
        data: bytes = _new_bytes(None, size)  # not filled with zeros first, nor copied afterwards
        start = _address_of(data)
        done = 0
        while done < size:
            here = IoVector(start + done, size - done)
            there = IoVector(address + done, size - done)
            copied = _libc().process_vm_readv(self.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if copied <= 0:
                code = ctypes.get_errno() if copied < 0 else errno.EFAULT
                if done == 0 and code in (errno.EPERM, errno.ENOSYS) and self._open_memory_file():
                    return self._read_by_file(address, size)
                raise self._unreadable(address, size, code)
            done += copied
        return data

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """(address, size) in the order asked for, in as few calls as the kernel allows; None where one can't be had.

        Raises `TargetError` where nothing can be.
        """
        pieces: list[Optional[bytes]] = []
        for first in range(0, len(places), MOST_VECTORS):
            pieces += self._read_together(places[first : first + MOST_VECTORS])
        return pieces

    def _read_together(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """At most `MOST_VECTORS`; what is unreadable ends a call, and the next one begins after it."""
        good = [at for at, (address, size) in enumerate(places) if address >= 0 < size and address + size <= TOP]
        total = sum(places[at][1] for at in good)
        if self._memory_file >= 0 or total > MOST_TOGETHER:
            return [read_or_none(self, *place) for place in places]
        room = memoryview(bytearray(total))
        lost = self.copy_into(room, array("Q", [number for at in good for number in places[at]]))
        if lost:
            read_or_none(self, *places[good[lost[0]]])  # raises where the process has ended
        unreadable, begin = set(lost), 0
        pieces: list[Optional[bytes]] = [None] * len(places)
        for number, at in enumerate(good):
            end = begin + places[at][1]
            if number not in unreadable:
                pieces[at] = bytes(room[begin:end])
            begin = end
        for at in set(range(len(places))).difference(good):
            pieces[at] = read_or_none(self, *places[at])
        return pieces

    def copy_into(self, room: memoryview, vectors: array[int]) -> list[int]:
        """Copy ranges, given as addresses and sizes in turns, one after the other into `room`, in a few calls.

        Returns the indices of those that can't be had; their part of `room` is left as it is.
        """
        lost: list[int] = []
        at, first, count = 0, 0, len(vectors) // 2
        while first < count:
            batch = vectors[2 * first : 2 * (first + MOST_VECTORS)]
            sizes = batch[1::2]
            total = sum(sizes)
            copied = self._copy_batch(room[at : at + total], batch)
            if copied == total:
                at, first = at + total, first + len(sizes)
                continue
            whole = 0  # of those before the first that can't be copied with others
            while sizes[whole] <= copied:
                at, copied, whole = at + sizes[whole], copied - sizes[whole], whole + 1
            data = read_or_none(self, *batch[2 * whole : 2 * whole + 2]) if self._memory_file >= 0 else None
            if data is not None:
                room[at : at + len(data)] = data
            else:
                lost.append(first + whole)
            at, first = at + sizes[whole], first + whole + 1
        return lost

    def _copy_batch(self, room: memoryview, vectors: array[int]) -> int:
        """How many bytes were copied, -1 if none could be."""
        total = sum(vectors[1::2])
        if self._memory_file >= 0 or total > len(room) or total > LARGEST_READ:
            return -1
        there = (IoVector * (len(vectors) // 2)).from_buffer(vectors)
        here = IoVector(ctypes.addressof(ctypes.c_char.from_buffer(room)), len(room)) if total else IoVector(0, 0)
        copied: int = _libc().process_vm_readv(self.pid, ctypes.byref(here), 1, there, len(there), 0)
        if copied < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
            self._open_memory_file()
        return copied

    def _open_memory_file(self) -> bool:
        try:
            self._memory_file = os.open(f"{self._proc}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def _read_by_file(self, address: int, size: int) -> bytes:
        parts = []
        done = 0
        while done < size:
            try:
                part = os.pread(self._memory_file, size - done, address + done)
            except (OSError, OverflowError) as error:
                code = error.errno if isinstance(error, OSError) else errno.EFAULT
                raise self._unreadable(address, size, code or errno.EFAULT) from error
            if not part:
                raise self._unreadable(address, size, errno.ESRCH)
            parts.append(part)
            done += len(part)
        return b"".join(parts)

    def _unreadable(self, address: int, size: int, code: int) -> RanklensError:
        if code == errno.ESRCH:
            return TargetEndedError(f"process {self.pid} has ended")
        if code in (errno.EPERM, errno.EACCES):
            return self._no_permission()
        if code in (errno.EFAULT, errno.EIO):
            return MemoryUnreadable(address, size)
        return MemoryUnreadable(address, size, os.strerror(code).lower())

    def threads(self) -> Sequence[KernelThread]:
        """Every thread; pc and sp of those that wait in a system call (proc(5), /proc/PID/syscall)."""
        try:
            names = [path.name for path in Path(f"{self._proc}/task").iterdir()]
        except OSError as error:
            raise TargetError(f"process {self.pid} has ended") from error
        return [KernelThread(tid, self._registers(tid)) for tid in sorted(int(name) for name in names)]

    def _registers(self, tid: int) -> Any:
        try:
            words = Path(f"{self._proc}/task/{tid}/syscall").read_text().split()
        except OSError as error:
            return Absent(f"the registers of thread {tid} can't be read, {(error.strerror or '').lower()}")
        return waiting_registers(words, tid)

    def file_identity(self, path: str) -> Optional[bytes]:
        """The build-id in the memory that maps `path`."""
        if path not in self._identities:
            self._identities[path] = build_id_in_maps(self.maps(), path, self.read)
        return self._identities[path]

    def _check_readable(self) -> None:
        """Read one byte: permissions for /proc/PID/maps and for memory differ (ptrace(2), access mode checking)."""
        is_empty = True
        for mapping in self.maps().one_by_one():
            is_empty = False
            if mapping.readable:
                try:
                    self.read(mapping.start, 1)
                except MemoryUnreadable:
                    continue
                return
        if is_empty:
            if self.is_kernel_thread:
                raise TargetError(f"process {self.pid} is a kernel thread: it has no memory of its own")
            raise TargetEndedError(f"process {self.pid} is ending")


def waiting_registers(words: Sequence[str], tid: int) -> Union[Mapping[int, int], Absent]:
    """The pc and sp of a thread by the words of its /proc/PID/task/TID/syscall."""
    if len(words) < 3:
        return Absent(f"thread {tid} is running")
    machine = os.uname().machine  # the kernel's own processor
    processor = of_kernel(machine)
    if processor is None:
        return Absent(f"the registers of a {machine} are not known")
    return {processor.stack_pointer: int(words[-2], 16), processor.pc: int(words[-1], 16)}


def check_is_process(number: int) -> None:
    """Raises `TargetError` for a thread's number, under which /proc shows its whole process."""
    try:
        lines = Path(f"/proc/{number}/status").read_bytes().splitlines()
    except OSError:
        return
    process = next((int(line.split()[1]) for line in lines if line.startswith(b"Tgid:")), number)
    if process != number:
        raise TargetError(f"{number} is a thread of process {process}, not a process", "give that pid")


def covered(mapped: list[tuple[int, int]], address: int, size: int) -> bool:
    """Whether [address, address+size) lies in ascending (start, end) without a gap."""
    at = place_of(mapped, address)
    while 0 <= at < len(mapped) and mapped[at][0] <= address < mapped[at][1]:
        end = mapped[at][1]
        if address + size <= end:
            return True
        size -= end - address
        address = end
        at += 1
    return False
