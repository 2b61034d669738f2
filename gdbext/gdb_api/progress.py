"""How far a command over many ranks has come, on the user's terminal, as GDB shows progress itself: `[####    ]`.

Takes the ranks that a command goes through. Nothing is shown in the first second, nor where there is no terminal; what
was shown is gone before anything else is printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

PATIENCE = 1.0  # seconds without a display
PACE = 0.1  # seconds between two pictures
WIDTH = 40  # columns of the bar


class Progress:
    """Of one command at a time."""

    def __init__(self) -> None:
        self._shown = ""

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        """The numbers one by one, while a bar tells how many of them are done."""
        following = time.monotonic() + PATIENCE
        try:
            for done, number in enumerate(numbers):
                now = time.monotonic()
                if now >= following:
                    following = now + PACE
                    self._show(done, len(numbers))
                yield number
        finally:
            self.clear()

    def _show(self, done: int, count: int) -> None:
        text = f"Rank {done} of {count} [{'#' * (WIDTH * done // count):{WIDTH}}]"
        if is_terminal():
            self.clear()
            self._shown = text
            put(text)

    def clear(self) -> None:
        """Take the bar from the screen."""
        if self._shown:
            put(f"\r{' ' * len(self._shown)}\r")
            self._shown = ""


def is_terminal() -> bool:
    """Whether GDB prints to one; GDB's own `sys.stdout` can't tell."""
    return sys.__stdout__ is not None and sys.__stdout__.isatty()


def put(text: str) -> None:
    """Write to the terminal past GDB's own pager."""
    if sys.__stdout__ is not None:
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
