"""Finds words in bytes whose values lie in given address ranges, at any byte offset, without looking at each.

Takes bytes and ranges with inclusive ends: one past an object still belongs to it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

WORD = 8
BLOCK = 1 << 15  # bytes that are compared at once

Ranges = list[tuple[int, int]]  # [low, high], both inclusive


def words_in(data: bytes, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """(offset, value) of every word, at any byte, whose value lies in one of the ranges; by their common high bytes."""
    tails = {value >> 24 for low, high in ranges for value in range(low & ~0xFFFFFF, high + 1, 1 << 24)}
    for tail in tails:
        pattern = tail.to_bytes(5, "little")
        found = data.find(pattern, 3)
        while found >= 0:
            value = int.from_bytes(data[found - 3 : found + 5], "little")
            if any(low <= value <= high for low, high in ranges):
                yield found - 3, value
            found = data.find(pattern, found + 1)


def changed_words(old: bytes, new: bytes, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """As `words_in(new)`, of words that `old` does not have at the same place alone; both are equally long."""
    for start in range(0, len(new), BLOCK):
        end = start + BLOCK + WORD - 1  # with the rest of the word that begins at the block's last byte
        part = new[start:end]
        if part != old[start:end]:
            yield from ((start + offset, value) for offset, value in words_in(part, ranges) if offset < BLOCK)


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
