"""A terminal that something is drawn on, and how it is given back where a signal ends the process meanwhile.

Takes a descriptor. It writes to it alone: libraries' own threads, which may be drawing still, can't any more from then
on. What ends in any other way gives the terminal back itself.
"""

from __future__ import annotations

import os
import termios
from contextlib import suppress

ONE_LINE = b"\r\x1b[2K\x1b[?25h"  # an empty line, and the cursor is seen (ECMA-48, EL; xterm's private mode 25)
KEEP_CURSOR = b"\x1b7"  # DECSC
# What textual's driver sets, as xterm's control sequences and kitty's keyboard protocol have it: no half-drawn picture
# (2026), no colours, pasting as typing, long lines folded, no reports of sizes, of the mouse and of being looked at, no
# keys but plain ones; then the other screen with the cursor where it was, which is seen.
FULL_SCREEN = (
    b"\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?1004l\x1b[<u\x1b[?1049l\x1b[?25h"
)


class Drawn:
    """What is drawn on the terminal of a descriptor; `undoing` are the bytes that take it away."""

    def __init__(self, descriptor: int, undoing: bytes) -> None:
        self._descriptor, self._undoing = descriptor, undoing
        self._own, self._nowhere = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._settings = termios.tcgetattr(descriptor)

    def begin(self) -> None:
        """Where the cursor is now it will be again."""
        os.write(self._own, KEEP_CURSOR)

    def undo(self) -> None:
        """The terminal as it was. Answers that it has given to what was asked by escape sequences are thrown away."""
        os.dup2(self._nowhere, self._descriptor)
        with suppress(termios.error):  # it is gone, or another process's by now
            if termios.tcgetattr(self._own) != self._settings:
                termios.tcsetattr(self._own, termios.TCSANOW, self._settings)
                termios.tcflush(self._own, termios.TCIFLUSH)
        os.write(self._own, self._undoing)
