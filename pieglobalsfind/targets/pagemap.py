"""Which pages of a process its kernel has ever given memory to (/proc/PID/pagemap).

Takes the path of that file and a range; gives the parts of it that may hold anything but zeros. Only private anonymous
memory may be asked about: a page of a file has bytes before the process touches it. It reads no memory of the process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from array import array
from collections.abc import Iterator

PAGE = os.sysconf("SC_PAGE_SIZE")
# struct pm_scan_arg of <linux/fs.h>, Linux 6.7: size, flags, start, end, where the walk ended, vector, its length,
# most pages, inverted categories, required ones, those of which one suffices, those to return
_SCAN = struct.Struct("=12Q")
_REGION = struct.Struct("=3Q")  # struct page_region: start, end, categories
PAGEMAP_SCAN = 3 << 30 | _SCAN.size << 16 | ord("f") << 8 | 16  # _IOWR('f', 16, struct pm_scan_arg)
PRESENT, SWAPPED, ZERO = 1 << 3, 1 << 4, 1 << 5  # PAGE_IS_PRESENT, PAGE_IS_SWAPPED, PAGE_IS_PFNZERO
REGIONS = 1024  # that one call may return
# proc(5), /proc/PID/pagemap: bit 63 "page present", bit 62 "page swapped"
IN_USE = 3 << 62
BLOCK = 512  # entries that are compared at once: a page table of x86-64
ENTRIES = 1 << 17  # that are read at once


def populated(path: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of what the kernel has backed with memory or swap, ascending; raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            yield from scanned(descriptor, start, end)
        except OSError as error:
            if error.errno != errno.ENOTTY:  # before Linux 6.7
                raise
            yield from listed(descriptor, start, end)
    finally:
        os.close(descriptor)


def scanned(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """By PAGEMAP_SCAN; raises `OSError` before it yields anything where the kernel does not have it."""
    vector = array("Q", bytes(_REGION.size * REGIONS))
    place, _ = vector.buffer_info()
    begin, start = start, start & -PAGE
    while start < end:
        request = bytearray(
            _SCAN.pack(_SCAN.size, 0, start, end, 0, place, REGIONS, 0, ZERO, ZERO, PRESENT | SWAPPED, PRESENT)
        )
        count = fcntl.ioctl(descriptor, PAGEMAP_SCAN, request)
        reached = start
        for index in range(count):
            first, last = vector[3 * index : 3 * index + 2]
            yield max(first, begin), min(last, end)
            reached = last
        # Linux 6.18 says of a last part that the walk ended before the last region, which it would return again.
        reached = max(reached, _SCAN.unpack(request)[4])
        if reached <= start:
            yield max(start, begin), end
            return
        start = reached


def listed(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """By the file itself, one word a page; untouched page tables are alike and are skipped at once."""
    begin = -1  # of a run in use
    at = start // PAGE
    last = -(-end // PAGE)
    while at < last:
        words = array("Q", os.pread(descriptor, 8 * min(ENTRIES, last - at), 8 * at))
        if not words:
            break
        for first in range(0, len(words), BLOCK):
            block = words[first : first + BLOCK]
            if block == array("Q", block[:1] * len(block)):
                runs = [(0, bool(block[0] & IN_USE))]
            else:
                used = [bool(word & IN_USE) for word in block]
                runs = [(0, used[0])]
                runs += [(index, used[index]) for index in range(1, len(used)) if used[index] != used[index - 1]]
            for index, is_used in runs:
                place = (at + first + index) * PAGE
                if is_used and begin < 0:
                    begin = place
                elif not is_used and begin >= 0:
                    yield max(begin, start), min(place, end)
                    begin = -1
        at += len(words)
    if begin >= 0:
        yield max(begin, start), min(at * PAGE, end)
