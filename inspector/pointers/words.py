"""Finds words in bytes whose values lie in given address ranges, at any byte offset, without looking at each.

Takes bytes and ranges with inclusive ends: one past an object still belongs to it. Words that glibc has mangled are
found by what they mean. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from pieglobalsfind.machine.processor import Processor

WORD = 8
SHORTEST = 3  # bytes of an address that are looked for
BLOCK = 1 << 15  # bytes that are compared at once
HIGH = 6  # of a mangled word: its last two bytes depend on bits 31 to 46 of the address, its first two on the rest

Ranges = list[tuple[int, int]]  # [low, high], both inclusive


class Word(NamedTuple):
    """A word that names an original place; `demangled` if it does so without glibc's mangling alone."""

    address: int
    value: int
    demangled: Optional[int] = None

    @property
    def place(self) -> int:
        """What it names."""
        return self.value if self.demangled is None else self.demangled


def words_in(data: bytes, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """(offset, value) of every word, at any byte, whose value lies in one of the ranges; by their common high bytes."""
    tails = {value >> 24 for low, high in ranges for value in range(low & ~0xFFFFFF, high + 1, 1 << 24)}
    for tail in tails:
        pattern = tail.to_bytes(5, "little")
        short = pattern.rstrip(b"\0")  # memory is full of zeros: a search for one at the end would search everywhere
        pattern = short if len(short) >= SHORTEST else pattern
        place = data.find(pattern, 3)
        while 0 <= place <= len(data) - 5:
            value = int.from_bytes(data[place - 3 : place + 5], "little")
            if any(low <= value <= high for low, high in ranges):
                yield place - 3, value
            place = data.find(pattern, place + 1)


def mangled_words(
    processor: Processor, data: bytes, start: int, ranges: Ranges, guard: int
) -> Iterator[tuple[int, int]]:
    """(offset, address) of every aligned word that means an address in one of the ranges once it is demangled.

    `start` is where the data lie.
    """
    first = -start % WORD
    for pattern in {processor.mangle(high, guard) >> 48 for high in high_halves(ranges)}:
        tail = pattern.to_bytes(2, "little")
        place = data.find(tail, first + HIGH)
        while place >= 0:
            offset = place - HIGH
            if (offset - first) % WORD == 0:
                value = processor.demangle(struct.unpack_from("<Q", data, offset)[0], guard)
                if any(low <= value <= high for low, high in ranges):
                    yield offset, value
            place = data.find(tail, place + 1)


def high_halves(ranges: Ranges) -> Iterator[int]:
    """An address for each value that bits 31 and up have in the ranges."""
    for low, high in ranges:
        yield from range(low >> 31 << 31, high + 1, 1 << 31)


def changed_pieces(old: bytes, new: bytes, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of blocks that are not the same, each with the rest of a word that begins at its last byte.

    `parts`, ascending, are (start, end) of where either may hold anything but zeros.
    """
    reached = 0
    for first, last in parts:
        first = max(first - WORD + 1, reached)  # a word may begin with zeros that no one wrote
        for start in range(first - first % BLOCK, last, BLOCK):
            reached = start + BLOCK
            piece = new[start : reached + WORD - 1]
            if piece != old[start : reached + WORD - 1]:
                yield start, piece


def candidates(data: bytes, start: int, ranges: Ranges, pointers: list[int]) -> Iterator[tuple[int, int]]:
    """Words whose value lies in one of the ranges: all that are aligned, and misaligned ones that are pointers."""
    seen = {offset: value for offset, value in words_in(data, ranges) if (start + offset) % WORD == 0}
    for offset in pointers:
        if offset not in seen and offset + WORD <= len(data):
            value = int.from_bytes(data[offset : offset + WORD], "little")
            if any(low <= value <= high for low, high in ranges):
                seen[offset] = value
    return iter(sorted(seen.items()))


def is_past_end(value: int, ranges: Ranges) -> bool:
    """Whether a value names the byte after a range, and lies in none."""
    return any(value == high for _, high in ranges) and not any(low <= value < high for low, high in ranges)
