"""A process's registry as a file: it can still be read when the process has ended.

Takes a pid; opens the memfd that the registry's mapping is of through /proc/PID/fd, where its writer keeps it open. It
maps nothing, so a file that is cut short meanwhile is an error and no signal.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.errors import RegistryError


class RegistryFile:
    """Close it, or let it go."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes of the mapping, as of now, or as they were when the process ended."""
        try:
            data = os.pread(self._descriptor, size, offset)
        except (OSError, OverflowError) as error:
            raise RegistryError(f"the registry can't be read, {error}") from error
        if len(data) != size:
            raise RegistryError("the registry is damaged, its file has been cut short")
        return data

    def close(self) -> None:
        """Close the file; twice is not an error."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def open_registry(pid: int) -> Optional[RegistryFile]:
    """None if the process has closed it, or it is not ours to open."""
    inode = mapped_inode(pid)
    for path in descriptors(pid) if inode else ():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            continue
        stat_result = os.fstat(descriptor)
        if stat.S_ISREG(stat_result.st_mode) and stat_result.st_ino == inode:
            return RegistryFile(descriptor)
        os.close(descriptor)
    return None


def descriptors(pid: int) -> Iterator[str]:
    """Paths of those that are named like a registry."""
    try:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            if str(path.readlink()).startswith(f"/{layout.MAPPING_NAME}"):
                yield str(path)
    except OSError:
        return


def mapped_inode(pid: int) -> int:
    """Of the one mapping that is named like a registry and begins at its file's first byte; 0 without one."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = [line.split() for line in file if layout.MAPPING_NAME.encode() in line]
    except OSError:
        return 0
    first = [words for words in lines if int(words[2], 16) == 0]
    return int(first[0][4]) if len(first) == 1 else 0
