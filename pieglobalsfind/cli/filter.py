"""Copy a stream line by line, and say after every address in it what is known of it.

Takes any bytes, text or not: what is not an address passes through byte by byte. It keeps no more than a line,
and gives each one on before it waits for the next.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import BinaryIO

from pieglobalsfind.cli.address_report import Finder

LONGEST = 1 << 20  # bytes of a line; a longer one is passed on in pieces
KEPT = 1 << 16  # answers to remember

# 0x..., or 16 hexadecimal digits as in the kernel's messages, or 12 with a letter among them as in /proc/PID/maps
_ADDRESS = re.compile(
    rb"(?<![0-9A-Za-z_])(?:0[xX][0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}|(?=[0-9]*[a-fA-F])[0-9a-fA-F]{12})(?![0-9A-Za-z_])"
)


def annotate(finder: Finder, source: BinaryIO, sink: BinaryIO) -> tuple[int, int]:
    """Copy `source` to `sink`; returns how many addresses there were and how many of them belong to something."""
    addresses = owned = 0

    @lru_cache(maxsize=KEPT)
    def note_on(address: int) -> bytes:
        answer = finder.answer(address)
        return f" [{answer.knowledge}]".encode("utf-8", "backslashreplace") if answer.found else b""

    def replaced(match: re.Match[bytes]) -> bytes:
        nonlocal addresses, owned
        note = note_on(int(match.group(), 16))
        addresses += 1
        owned += bool(note)
        return match.group() + note

    while True:
        line = source.readline(LONGEST)
        if not line:
            return addresses, owned
        sink.write(_ADDRESS.sub(replaced, line))
        sink.flush()
