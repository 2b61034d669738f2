"""Tune this process's own malloc: keep freed memory for the next rank that is read."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGEST_THRESHOLD, KEPT = 32 << 20, 256 << 20  # bytes


def keep_freed() -> None:
    """Have the allocator use freed memory again instead of giving it back, where it is the GNU C library's.

    Images of many ranks are read one after the other into as much memory each; fresh pages for every one of them took
    longer than the reading (mallopt(3); larger blocks than the largest threshold are unaffected).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_THRESHOLD)
        mallopt(M_TRIM_THRESHOLD, KEPT)
