"""Calls of AMPI's functions in the words of the debug ABI: which rank they concern, and in which order."""

from __future__ import annotations

import struct

import pytest

from pieglobalsfind.decoders.ampi.events import ARRIVED, BEGIN, PUP, RETURNED, SETUP, Calls
from pieglobalsfind.decoders.registry.layout import AFTER_COPIES, AFTER_UNPACK, BEFORE_COPIES, BEFORE_PACK, CREATED
from pieglobalsfind.model import RankTable
from tests.pieglobalsfind.decoders.test_external_state import STACK, begin, sound, target_of, written
from tests.support.fabricate.memory import Mapped, MemoryTarget

HEAP = 0x7C0000000000
PUPPER, THREAD, SHARE = HEAP, HEAP + 0x100, HEAP + 0x400
SIZING, PACKING, UNPACKING, DELETING, MIGRATION = 0x100, 0x200, 0x400, 0x8, 0x40


def job(state: int = 0, rank: int = 1) -> MemoryTarget:
    """Three ranks; a pupper in a state, and a thread and a share of one rank."""
    memory = bytearray(0x1000)
    struct.pack_into("<I", memory, PUPPER - HEAP + 8, state)
    struct.pack_into("<Q", memory, THREAD - HEAP + 88, begin(rank))
    struct.pack_into("<QQQ", memory, SHARE - HEAP + 56, begin(rank), begin(rank + 1), begin(rank) + 0x40000)
    target = target_of(written(), sound())
    target.mapped.append(Mapped(HEAP, 0x1000, bytes(memory)))
    return target


def table_of(target: MemoryTarget) -> RankTable:
    from pieglobalsfind.decoders import decode

    return decode(target)


class Told:
    """Calls of one job."""

    def __init__(self, target: MemoryTarget) -> None:
        self.target, self.calls = target, Calls()

    def call(
        self, function: str, first: int = 0, second: int = 0, pointer: int = 0, here: tuple[int, ...] = ()
    ) -> object:
        return self.calls.event(self.target, lambda: table_of(self.target), function, (first, second, pointer), here)


def test_before_the_first_rank_is_made_nothing_is_copied() -> None:
    told = Told(job())
    assert [told.call(SETUP, rank) for rank in range(3)] == [(BEFORE_COPIES, -1), None, None]


def test_the_first_rank_that_begins_tells_that_all_are_made() -> None:
    told = Told(job())
    found = [told.call(BEGIN, pointer=begin(rank) + STACK - 8) for rank in (2, 0, 1)]
    assert found == [(AFTER_COPIES, -1), (CREATED, 0), (CREATED, 1)]


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (SIZING | MIGRATION, None),
        (UNPACKING | MIGRATION, None),
        (PACKING | DELETING | MIGRATION, (BEFORE_PACK, 2)),
        (PACKING, (BEFORE_PACK, 2)),
        (0x8000, (BEFORE_PACK, 2)),  # a state that makes no sense: better in vain than too late
        (SIZING | UNPACKING, (BEFORE_PACK, 2)),
    ],
)
def test_packing_concerns_the_rank_whose_stack_the_thread_names(state: int, event: object) -> None:
    assert Told(job(state, rank=2)).call(PUP, PUPPER, THREAD) == event


def test_a_thread_of_no_rank() -> None:
    assert Told(job(PACKING)).call(PUP, PUPPER, PUPPER + 0x800) == (BEFORE_PACK, -1)
    assert Told(job(PACKING)).call(PUP, PUPPER, 0x1234) == (BEFORE_PACK, -1)


def test_a_rank_has_arrived_when_the_call_returns() -> None:
    told = Told(job())
    assert told.call(ARRIVED, SHARE, pointer=0x7FFF0000) is None
    assert told.call(RETURNED, pointer=0x7FFF0100) is None  # of another call
    assert told.call(RETURNED, pointer=0x7FFF0008) == (AFTER_UNPACK, 1)
    assert told.call(RETURNED, pointer=0x7FFF0008) is None


def test_a_rank_that_has_stayed_does_not_arrive() -> None:
    told = Told(job())
    told.call(ARRIVED, SHARE, pointer=0x7FFF0000)
    assert told.call(RETURNED, pointer=0x7FFF0008, here=(0, 1)) is None
