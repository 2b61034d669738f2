"""Whether a program drives GDB, by GDB/MI, as editors do.

GDB tells such a program of a silent breakpoint `*stopped` and nothing more: no reason, no frame, no thread.
"""

from __future__ import annotations

import re
from functools import cache

OPTION = rb"\0--?i(?:nt[a-z]*)?[=\0]mi[0-9]?\0"


@cache
def speaks_mi() -> bool:
    """By GDB's command line: its Python has no other way to know."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return False
    return re.search(OPTION, words.partition(b"\0--args\0")[0] + b"\0") is not None
