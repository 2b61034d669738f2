"""The words of one stack, for what walks through it or looks into its frames.

Takes a target and where the stack is; reads it in chunks, and keeps the last one.
"""

from __future__ import annotations

from typing import Union

from pieglobalsfind.model import Absent, Region
from pieglobalsfind.target import Target

CHUNK = 1 << 16  # bytes of a stack that are read at once


class Memory:
    """The words of one stack, read in chunks."""

    def __init__(self, target: Target, stack: Union[Region, Absent]) -> None:
        self._target = target
        self._first, self._end = (stack.start, stack.end) if isinstance(stack, Region) else (0, 0)
        self._start, self._words = 0, memoryview(b"").cast("Q")

    def word(self, address: int) -> int:
        """The word at an address; raises `MemoryUnreadable`, also for an address that no word is at."""
        at = (address - self._start) >> 3
        if not 0 <= at < len(self._words) or (address - self._start) & 7:
            self._load(address)
            at = 0
        return self._words[at]

    def read(self, address: int, size: int) -> bytes:
        """Bytes from anywhere, the stack or not; raises `MemoryUnreadable`."""
        at = address - self._start
        if at >= 0 and at + size <= len(self._words) * 8:
            return bytes(self._words.cast("B")[at : at + size])
        return self._target.read(address, size)

    def _load(self, address: int) -> None:
        size = min(CHUNK, self._end - address) & -8 if self._first <= address < self._end else 8
        data = self._target.read(address, max(size, 8))
        self._start, self._words = address, memoryview(data).cast("Q")
