"""Counts who opens a file, by the kernel's own telling: inotify(7), which sees every process and every mount of it.

Takes files; gives how often each was opened since. It changes nothing about them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

IN_OPEN, IN_CLOSE_NOWRITE = 0x20, 0x10  # with both, two openings are never told as one
HEAD = struct.Struct("=iIII")  # struct inotify_event: watch, mask, cookie, length of the name


class Opened:
    """`counts` is by path, as of now."""

    def __init__(self, paths: Iterable[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, Path] = {}
        self._counts: Counter[Path] = Counter()
        for path in paths:
            watch = libc.inotify_add_watch(self.descriptor, os.fsencode(path), IN_OPEN | IN_CLOSE_NOWRITE)
            if watch < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(path))
            self._paths[watch] = path

    def counts(self) -> Counter[Path]:
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return self._counts
            for at in range(0, len(data), HEAD.size):  # events of a file itself have no name
                watch, mask, _, _ = HEAD.unpack_from(data, at)
                self._counts[self._paths[watch]] += bool(mask & IN_OPEN)


@contextmanager
def watched(paths: Iterable[Path]) -> Iterator[Opened]:
    opened = Opened(paths)
    try:
        yield opened
    finally:
        os.close(opened.descriptor)
