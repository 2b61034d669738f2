"""The memory map of a process that stands still, asked of its kernel mapping by mapping.

Takes a pid; gives what /proc/PID/maps says. The kernel writes that file's ten thousand lines for a job of a thousand
ranks in milliseconds, and answers which mapping holds an address in microseconds (PROCMAP_QUERY, Linux 6.11 and newer,
include/uapi/linux/fs.h). Older kernels, and processes that map very many files, are read as a whole.
"""

from __future__ import annotations

import array
import fcntl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Optional

from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.target import MemoryMapping

# struct procmap_query: size, flags, address; start, end, flags, page size, offset, inode; device; sizes and addresses
# of the buffers for a name and a build-id.
_QUERY = struct.Struct("=3Q 6Q 2I 2I 2Q")
PROCMAP_QUERY = 3 << 30 | _QUERY.size << 16 | ord("f") << 8 | 17  # _IOWR('f', 17, struct procmap_query)
READABLE, WRITABLE, EXECUTABLE, SHARED, OR_NEXT, OF_A_FILE = (1 << bit for bit in range(6))
LONGEST_PATH = 4096
KERNEL = 1 << 63  # what lies above, as [vsyscall], the file alone tells
MOST_QUERIES = 500  # one takes as long as a few dozen lines


class StandingMaps(ProcMaps):
    """Of a process that stands still while this is in use; `read` gives the whole file."""

    def __init__(self, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(None)
        self._path = path
        self._read = read
        self._files: Optional[list[MemoryMapping]] = None

    def _contents(self) -> bytes:
        return self._read()

    def of_files(self, part: str) -> list[MemoryMapping]:
        """Return the mappings of files whose path contains `part`."""
        if self._files is None and not self.is_read:
            with suppress(OSError):  # the kernel knows no such question, or a path is too long for it
                self._files = self._all_of_files()
        if self._files is None:
            return super().of_files(part)
        return [file for file in self._files if part in file.path]

    def at(self, address: int) -> Optional[MemoryMapping]:
        """Return the mapping that has an address, or None."""
        if not self.is_read and 0 <= address < KERNEL:
            with suppress(OSError), open(self._path, "rb") as maps:
                return _mapping(maps.fileno(), address, 0)
        return super().at(address)

    def _all_of_files(self) -> Optional[list[MemoryMapping]]:
        """Those of files, in ascending order; None if they are too many."""
        with open(self._path, "rb") as maps:
            answers = list(zip(range(MOST_QUERIES), _from(maps.fileno(), 0)))
        return [mapping for _, mapping in answers] if len(answers) < MOST_QUERIES else None


def _from(maps: int, address: int) -> Iterator[MemoryMapping]:
    mapping = _mapping(maps, address, OR_NEXT | OF_A_FILE)
    while mapping is not None:
        yield mapping
        mapping = _mapping(maps, mapping.end, OR_NEXT | OF_A_FILE)


def anonymous_parts(path: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whether it is private anonymous memory now) of a range; not, where the kernel does not say."""
    with suppress(OSError), open(path, "rb") as maps:
        while start < end:
            mapping = _mapping(maps.fileno(), start, 0)
            if mapping is None:
                break
            last = min(mapping.end, end)
            is_named = not (mapping.path in ("", "[heap]") or mapping.path.startswith("[anon:"))
            yield start, last, not (mapping.shared or is_named)
            start = last
    if start < end:
        yield start, end, False


def _mapping(maps: int, address: int, flags: int) -> Optional[MemoryMapping]:
    """The mapping that a question is answered with, None if there is none; raises `OSError` if it can't be asked."""
    name = array.array("B", bytes(LONGEST_PATH))
    at, size = name.buffer_info()
    query = bytearray(_QUERY.pack(_QUERY.size, flags, address, *[0] * 8, size, 0, at, 0))
    try:
        fcntl.ioctl(maps, PROCMAP_QUERY, query)
    except FileNotFoundError:
        return None
    _, _, _, start, end, has, _, offset, _, _, _, size, _, _, _ = _QUERY.unpack(query)
    path = name[: max(size - 1, 0)].tobytes().decode("utf-8", "surrogateescape")  # the size counts its final zero
    return MemoryMapping(
        start, end, bool(has & READABLE), bool(has & WRITABLE), bool(has & EXECUTABLE), offset, path, bool(has & SHARED)
    )
