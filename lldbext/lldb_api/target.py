"""LLDB's process as a target: what the kernel reports of it, and LLDB's own reading where the kernel refuses.

Takes an `SBProcess`; gives a `Target`. LLDB asks for threads while it takes a process to be running (at stops inside a
step), and reads nothing for us then; the kernel does. A core file is read by the core's own reader (LLDB lists 17 of 25
mappings, and no names). Nothing is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

import lldb

from lldbext.lldb_api.remote_target import RemoteProcess, is_held_here, read_memory
from pieglobalsfind.elf.file import ET_CORE, ElfFile
from pieglobalsfind.errors import ObjectFileError, TargetError
from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.target import KernelThread, MemoryMapping, Target
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.procfs import is_file

CORE_PLUGINS = ("elf-core", "minidump")


def open_process(process: Any) -> Target:
    """What LLDB debugs; raises `TargetError` if there is nothing to look at now."""
    check_is_held(process)
    if process.GetPluginName() in CORE_PLUGINS:
        return open_core(process)
    return StoppedProcess(process) if is_held_here(process) else RemoteProcess(process)


def check_is_held(process: Any) -> None:
    """Raises `TargetError` if LLDB has let go of the process, which may run on then, or has none."""
    if not process.IsValid() or process.GetState() in (lldb.eStateExited, lldb.eStateDetached, lldb.eStateInvalid):
        raise TargetError("there is no process and no core file", "run the program, attach to it, or open a core file")


def open_core(process: Any) -> Target:
    """The core file that LLDB has open."""
    path = process.GetCoreFile().fullpath if hasattr(process, "GetCoreFile") else mapped_core()
    return CoreTarget(path, process.GetTarget().GetExecutable().fullpath or None)


def mapped_core() -> str:
    """The core file that LLDB itself has mapped: before version 16 it does not tell the path."""
    maps = ProcMaps(Path("/proc/self/maps").read_bytes())
    paths = {mapping.path for mapping in maps if is_file(mapping.path) and is_core(mapping.path)}
    if len(paths) != 1:
        raise TargetError("this LLDB does not give the core file's path", "use LLDB 16 or newer, or one core at a time")
    return paths.pop()


def is_core(path: str) -> bool:
    """Whether a file is an ELF core file; any other file is not."""
    try:
        with ElfFile(path) as file:
            return file.header.type == ET_CORE
    except ObjectFileError:
        return False


class StoppedProcess:
    """A process of this machine that LLDB holds by a server of its own."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._kernel = LiveTarget(process.GetProcessID())

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"process {self._process.GetProcessID()}"

    @property
    def is_live(self) -> bool:
        """False: while a command runs, LLDB holds every thread."""
        return False

    def read(self, address: int, size: int) -> bytes:
        """Read memory; raises `MemoryUnreadable`."""
        try:
            return self._kernel.read(address, size)
        except TargetError:
            return read_memory(self._process, address, size)

    def check_is_alive(self) -> None:
        """Raises `TargetEndedError` if the process has ended and LLDB does not know it yet."""
        self._kernel.check_is_alive()

    def maps(self) -> Sequence[MemoryMapping]:
        """Return the memory map."""
        return self._kernel.maps()

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Without the pages that the process never touched."""
        return self._kernel.populated(start, end)

    def threads(self) -> Sequence[KernelThread]:
        """As the kernel tells them: LLDB's own list holds suspended ranks too, which are made from this one."""
        return self._kernel.threads()

    def open_path(self, path: str) -> Optional[str]:
        """Return a path by which this process can open the target's file, or None."""
        return self._kernel.open_path(path)

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        return self._kernel.file_identity(path)
