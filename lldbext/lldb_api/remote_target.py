"""A process behind a stub that LLDB has not started itself: lldb-server or gdbserver, here or on another machine.

Takes an `SBProcess`; gives a `Target`. Everything comes through LLDB's connection, nothing from this machine's /proc:
there the same number may be another process. Mappings are the stub's own /proc/PID/maps, because LLDB gets none from
gdbserver and no offsets from lldb-server (GDB remote protocol, packets `vFile` and `qfThreadInfo`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

import lldb

from pieglobalsfind.elf.loaded import build_id_in_maps
from pieglobalsfind.errors import MemoryUnreadable, TargetError
from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.model import Absent
from pieglobalsfind.target import KernelThread, MemoryMapping
from pieglobalsfind.targets.live import waiting_registers
from pieglobalsfind.targets.procfs import is_file

CHUNK = 0x1000  # bytes of a file in one packet; stubs need not send more
TOP = 1 << 64
LARGEST_READ = 1 << 24  # bytes that are read by packets of ours
LARGEST_FILE = 1 << 26  # bytes of a list of mappings
RESPONSE = "response: "
UNKNOWN_PACKET = "error: UNIMPLEMENTED"  # LLDB's word for no answer


def is_held_here(process: Any) -> bool:
    """Whether a server that this LLDB has started itself traces the process; then /proc is about the same one."""
    tracer = field_of(process.GetProcessID(), "TracerPid")
    return tracer != 0 and field_of(tracer, "PPid") == os.getpid()


def lends_memory(process: Any) -> bool:
    """Whether LLDB gets memory for its expressions without calling mmap in the process, as it does with gdbserver."""
    if process.GetPluginName() != "gdb-remote" or is_held_here(process):
        return True
    return Stub(process).lends_memory()


def field_of(pid: int, name: str) -> int:
    """A number in /proc/PID/status, 0 if there is none."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return 0
    match = re.search(rf"^{name}:\s*(\d+)$", text, re.MULTILINE)
    return int(match.group(1)) if match else 0


def read_memory(process: Any, address: int, size: int) -> bytes:
    """What LLDB reads of a process; raises `MemoryUnreadable`."""
    error = lldb.SBError()
    try:
        data = process.ReadMemory(address, size, error) if size else b""
    except (OverflowError, TypeError, ValueError, MemoryError) as refused:
        raise MemoryUnreadable(address, size) from refused
    if not error.Success() or data is None or len(data) != size:
        raise MemoryUnreadable(address, size)
    return bytes(data)


class RemoteProcess:
    """A process that is seen through its stub alone."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._maps: Optional[Sequence[MemoryMapping]] = None

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"process {self._process.GetProcessID()}"

    @property
    def is_live(self) -> bool:
        """False: the stub holds every thread."""
        return False

    def read(self, address: int, size: int) -> bytes:
        """Read memory; raises `MemoryUnreadable`."""
        try:
            return read_memory(self._process, address, size)
        except MemoryUnreadable:  # LLDB takes the process for running at the stops inside a step
            return Stub(self._process).memory(address, size)

    def maps(self) -> Sequence[MemoryMapping]:
        """Return the memory map, read through the stub."""
        if self._maps is None:
            content = Stub(self._process).contents(f"/proc/{self._process.GetProcessID()}/maps")
            self._maps = ProcMaps(content)
        return self._maps

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads with their registers."""
        stub = Stub(self._process)
        return [KernelThread(tid, self._registers(stub, tid)) for tid in stub.threads()]

    def _registers(self, stub: Stub, tid: int) -> Union[Mapping[int, int], Absent]:
        try:
            words = stub.contents(f"/proc/{self._process.GetProcessID()}/task/{tid}/syscall").decode().split()
            return waiting_registers(words, tid)
        except (TargetError, ValueError):
            return Absent(f"the stub does not report the registers of thread {tid}")

    def open_path(self, path: str) -> Optional[str]:
        """Where LLDB has the file: its own copy of it, or the same path here; the build-id tells whether it is it."""
        for module in self._process.GetTarget().modules:
            if str(module.GetPlatformFileSpec().fullpath) == path and is_file(str(module.file.fullpath)):
                return str(module.file.fullpath)
        return path if is_file(path) else None

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        return build_id_in_maps(self.maps(), path, self.read)


class Stub:
    """The packets that LLDB sends for us."""

    def __init__(self, process: Any) -> None:
        self._interpreter = process.GetTarget().GetDebugger().GetCommandInterpreter()

    def _ask(self, packet: str) -> str:
        result = lldb.SBCommandReturnObject()
        self._interpreter.HandleCommand(f"process plugin packet send {packet}", result, False)
        output = result.GetOutput() or ""
        if not result.Succeeded() or RESPONSE not in output:
            raise TargetError("the stub does not answer", "use lldb-server or gdbserver")
        answer = str(output.split(RESPONSE, 1)[1].removesuffix("\n"))
        return "" if answer.strip() == UNKNOWN_PACKET else answer

    def lends_memory(self) -> bool:
        """Whether the stub knows LLDB's packets `_M` and `_m`; one that doesn't answers nothing."""
        return self._ask("_m0") != ""

    def memory(self, address: int, size: int) -> bytes:
        """Bytes of memory; raises `MemoryUnreadable`."""
        if not 0 <= address <= address + size <= TOP or size > LARGEST_READ:
            raise MemoryUnreadable(address, size)
        content = b""
        while len(content) < size:
            wanted = min(CHUNK, size - len(content))
            answer = self._ask(f"m{address + len(content):x},{wanted:x}")
            if not re.fullmatch(r"(?:[0-9a-f]{2})+", answer) or len(answer) > 2 * wanted:
                raise MemoryUnreadable(address, size)
            content += bytes.fromhex(answer)
        return content

    def contents(self, path: str) -> bytes:
        """A file of the stub's machine."""
        opened = self._ask(f"vFile:open:{path.encode().hex()},0,0")
        if not re.fullmatch(r"F[0-9a-f]+", opened):
            raise TargetError(f"the stub does not send {path}", "use lldb-server or gdbserver")
        try:
            return self._read(opened[1:])
        finally:
            self._ask(f"vFile:close:{opened[1:]}")

    def _read(self, descriptor: str) -> bytes:
        content = b""
        while len(content) < LARGEST_FILE:
            size, _, data = self._ask(f"vFile:pread:{descriptor},{CHUNK:x},{len(content):x}").partition(";")
            part = re.sub("}(.)", lambda match: chr(ord(match.group(1)) ^ 0x20), data, flags=re.DOTALL)
            part_bytes = part.encode("utf-8", "surrogateescape")
            if not re.fullmatch(r"F[0-9a-f]+", size) or int(size[1:], 16) != len(part_bytes):
                raise TargetError("the stub's answer is invalid", "use lldb-server or gdbserver")
            if not part_bytes:
                return content
            content += part_bytes
        raise TargetError("the stub reports too many mappings")

    def threads(self) -> list[int]:
        """The kernel's numbers of the process's threads, in the order in which LLDB has them."""
        threads: list[int] = []
        answer = self._ask("qfThreadInfo")
        while answer.startswith("m") and len(threads) < 1 << 20:
            threads += [int(word.rpartition(".")[2], 16) for word in answer[1:].split(",")]
            answer = self._ask("qsThreadInfo")
        return threads
