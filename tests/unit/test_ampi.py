"""AMPI's discovery on fabricated memory: shares of the address range, and threads that are true, damaged or stale."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from pieglobalsfind.decoders import ampi
from tests.fabricate.memory import Mapped, MemoryTarget

MEGABYTE = 1 << 20
SPACE = ampi.Space(0x400000000, 0x400000000 + 50 * MEGABYTE, MEGABYTE, 4, entry=0x555500001000, current=None)
HEAP = 0x10000


def _heap(context: int, end: int, size: int = MEGABYTE, at: int = 0x98) -> MemoryTarget:
    words = struct.pack("<QQQQQ", context, SPACE.entry, end, 0, size)
    return MemoryTarget([Mapped(HEAP, 0x1000, bytes(at) + words, "[heap]")])


def test_every_share_belongs_to_its_rank_and_the_last_to_nobody() -> None:
    assert [SPACE.begin(rank) for rank in range(5)] == [0x400000000 + 10 * MEGABYTE * rank for rank in range(5)]
    assert [SPACE.rank_at(SPACE.begin(rank) + 5) for rank in range(5)] == [0, 1, 2, 3, None]
    assert SPACE.rank_at(SPACE.start - 1) is None


@pytest.mark.parametrize("at", [0x98, 0xA0, 0xA8])
def test_a_thread_is_found_wherever_its_structure_keeps_the_context(at: int) -> None:
    end = SPACE.begin(2) + MEGABYTE
    target = _heap(end - 0x200, end, at=at)
    assert list(ampi._threads(target, target.maps(), SPACE)) == [2]


@pytest.mark.parametrize(
    ("context", "end", "size"),
    [
        (0, SPACE.begin(2) + MEGABYTE, MEGABYTE),  # stale: its context is not on its stack
        (SPACE.begin(2) + MEGABYTE - 8, SPACE.begin(2) + MEGABYTE, MEGABYTE),  # no room for registers
        (SPACE.begin(2) + 64, SPACE.begin(2) + 4096, 2048),  # moved: its stack is not where a rank's begins
        (64, 128, 0),
    ],
)
def test_a_damaged_stale_or_moved_thread_is_nobodys(context: int, end: int, size: int) -> None:
    target = _heap(context, end, size)
    assert ampi._threads(target, target.maps(), SPACE) == {}


@pytest.mark.parametrize("change", [{"count": 0}, {"count": 1 << 30}, {"slot": 3}, {"end": 0}, {"count": 50}])
def test_impossible_values_do_not_validate(change: dict[str, int]) -> None:
    assert SPACE.is_valid
    assert not dataclasses.replace(SPACE, **change).is_valid
