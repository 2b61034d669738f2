"""Tells from GDB's command line whether a program (MI) or `-batch` drives it."""

from __future__ import annotations

import re
from functools import cache

MI = rb"\0--?i(?:nt[a-z]*)?[=\0]mi[0-9]?\0"
BATCH = rb"\0--?batch(?:-silent)?\0"


@cache
def speaks_mi() -> bool:
    """Whether a program does by GDB/MI, as editors do.

    GDB tells such a program of a silent breakpoint `*stopped` and nothing more: no reason, no frame, no thread.
    """
    return re.search(MI, options()) is not None


@cache
def is_batch() -> bool:
    """Whether GDB ends by itself after its commands (`-batch`)."""
    return re.search(BATCH, options()) is not None


def options() -> bytes:
    """Each word of the command line between zeros, without the program's own."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return b""
    return words.partition(b"\0--args\0")[0] + b"\0"
