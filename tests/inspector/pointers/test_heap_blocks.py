"""Blocks of a heap by its allocator's words, which are believed whole or not at all; mangled words among others."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Optional

import pytest

from inspector.pointers import heap_blocks
from inspector.pointers.heap_blocks import WINDOW, Blocks
from inspector.pointers.words import mangled_words, words_in
from pieglobalsfind.machine.x86_64 import X86_64

START, FIRST, UNIT = 0x200000800000, 64, 16
GUARD = 0xFEDCBA9876543210


def heap(sizes: Sequence[int]) -> bytes:
    """A heap of rbtree_best_fit: blocks of so many units, free ones negative, and what is behind the last."""
    units = [abs(size) for size in sizes]
    span = sum(units)
    found = bytearray(FIRST)
    before, before_is_free = span, False
    for one, size in zip(sizes, units):
        head = size | (one > 0) << 63 | (not before_is_free) << 62
        found += struct.pack("<QQ", before, head) + bytes(size * UNIT - 16)
        before, before_is_free = size, one < 0
    found += struct.pack("<QQ", before, span | 1 << 63 | (not before_is_free) << 62)
    return bytes(found) + bytes(100)


def blocks_in(data: bytes) -> Optional[Blocks]:
    """Those of a heap with these bytes, of which no more than a window is read at once."""

    def read(address: int, size: int) -> bytes:
        assert 0 < size <= WINDOW and address >= START and address + size <= START + len(data)
        return data[address - START : address - START + size]

    return heap_blocks.blocks_in(read, START, len(data))


def test_a_block_larger_than_what_is_held() -> None:
    large = WINDOW // UNIT + 3
    blocks = blocks_in(heap([2, large, 5, -large, 7]))
    assert blocks is not None
    last = START + FIRST + (2 + large + 5 + large) * UNIT + 16
    assert blocks.at(last) == (last, 7 * UNIT - 8, True)
    assert blocks.at(last - large * UNIT) is None, "free"


def test_blocks_in_use() -> None:
    blocks = blocks_in(heap([3, -4, 5, 100]))
    assert blocks is not None
    first, second = START + FIRST + 16, START + FIRST + 7 * UNIT + 16
    assert blocks.at(first) == (first, 3 * UNIT - 8, True)  # the last word is in the next block's header
    assert blocks.at(first + 39) == blocks.at(first) and blocks.at(first + 40) is None
    assert blocks.at(first + 3 * UNIT) is None, "free"
    assert blocks.at(second) == (second, 5 * UNIT - 8, True)
    assert blocks.at(START) is None and blocks.at(1 << 63) is None


def test_damaged_heaps_are_not_believed() -> None:
    whole, chance = heap([3, -4, 5, 100, -3, 7]), random.Random(3)
    headers = [FIRST + sum([3, 4, 5, 100, 3, 7][:number]) * UNIT for number in range(7)]
    for at in headers:
        for byte in (8, 12, 15):  # of sizes and flags
            changed = bytearray(whole)
            changed[at + byte] ^= 0x40
            assert blocks_in(bytes(changed)) is None
    for length in range(0, len(whole) - 100, 7):
        assert blocks_in(whole[:length]) is None
    for _ in range(300):
        blocks_in(chance.randbytes(chance.randrange(400)))
    assert blocks_in(bytes(1 << 16)) is None


@pytest.mark.parametrize("start", [0x1000, 0x1003])
def test_mangled_words_are_found_where_they_are(start: int) -> None:
    """As by looking at each aligned word."""
    chance, ranges = random.Random(5), [(0x7F0000001000, 0x7F0000001FFF), (0x5555_7FFF_F000, 0x5555_8000_0FFF)]
    data = bytearray(chance.randbytes(4000))
    for address in (0x7F0000001234, 0x55557FFFF001, 0x555580000001, 0x7F0000002000, 0x7F0000001FFF):
        for _ in range(5):
            struct.pack_into("<Q", data, -start % 8 + 8 * chance.randrange(490), X86_64.mangle(address, GUARD))
            struct.pack_into("<Q", data, chance.randrange(3990), X86_64.mangle(address, GUARD))
    expected = []
    for offset in range(-start % 8, len(data) - 7, 8):
        value = X86_64.demangle(struct.unpack_from("<Q", data, offset)[0], GUARD)
        if any(low <= value <= high for low, high in ranges):
            expected.append((offset, value))
    assert sorted(mangled_words(X86_64, bytes(data), start, ranges, GUARD)) == expected and len(expected) > 8


def test_words_at_the_end_of_the_bytes() -> None:
    """An address is looked for without its zeros: it still has to be there whole."""
    data = struct.pack("<QQ", 1, 0x7F0000001234)
    assert list(words_in(data, [(0x7F0000001000, 0x7F0000002000)])) == [(8, 0x7F0000001234)]
    assert list(words_in(data[:-1], [(0x7F0000001000, 0x7F0000002000)])) == []
