"""Rings of events as a runtime writes them, and as none would: overtaken, torn, cut, absurd, of older writers."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable

import pytest

from inspector.job.event_sources import reader
from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.registry.event_ring import Event, EventRing, Read
from pieglobalsfind.errors import RanklensError, RegistryError
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.fabricate.registry import HEADER_SIZE, HEADER_SIZE_WITHOUT_EVENTS, NONE, Registry

ADDRESS = 0x7E0000000000
EVENTS_AT, WRITTEN_AT, ENTRY = 504, 520, 48  # rank_debug.h
Slot = tuple[int, int, int, int, int, int, int, int]


def slot(number: int, kind: int = 3, rank: int = 0) -> Slot:
    return (number, 1000 * number, 10**18 + 1000 * number, kind, rank, 0, NONE, 0)


def ring(slots: Iterable[Slot], written: int, **fields: object) -> Registry:
    return Registry(ADDRESS, events=tuple(slots), events_written=written).changed(**fields)


def read_of(data: bytearray) -> Read:
    def read(offset: int, size: int) -> bytes:
        if offset + size > len(data):
            raise RegistryError("that is not there")
        return bytes(data[offset : offset + size])

    return read


def memory_of(registry: Registry) -> bytearray:
    return bytearray(registry.encode().ljust(registry.size, b"\0"))


def numbers(events: Iterable[Event]) -> list[int]:
    return [event.number for event in events]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("extra", [0, 16])
def test_what_was_written_comes_back(order: str, extra: int) -> None:
    slots = [(1, 5, 7, 3, 4, 2, NONE, 0), (2, 6, 8, 4, 4, 2, 1, 3), (3, 7, 9, 1, -1, NONE, NONE, 0), slot(0)]
    mapping = memory_of(ring(slots, 3, order=order, extra=extra))
    target = MemoryTarget([Mapped(ADDRESS, len(mapping), bytes(mapping), "/memfd:rank_debug_registry (deleted)")])
    event_ring = EventRing(reader(target))
    assert (event_ring.process, event_ring.job_id, event_ring.node, event_ring.room) == (0, "job", "node", 4)
    events, lost = event_ring.new()
    assert lost == 0 and events == [
        Event(1, 5, 7, "created", 4, 2, 0, -1, 0),
        Event(2, 6, 8, "leaves", 4, 2, 0, 1, 3),
        Event(3, 7, 9, "copies begin", -1, -1, 0, -1, 0),
    ]
    assert event_ring.new() == ([], 0)
    assert decode(target).rank_count == 0  # a reader of the other tables is not disturbed


def test_a_ring_that_went_round_tells_what_is_lost() -> None:
    event_ring = EventRing(read_of(memory_of(ring([slot(9), slot(10), slot(7), slot(8)], 10))))
    events, lost = event_ring.new()
    assert (numbers(events), lost) == ([7, 8, 9, 10], 6)


def test_reading_goes_on_where_it_stopped() -> None:
    data = memory_of(ring([slot(1), slot(2), slot(0), slot(0)], 2))
    event_ring = EventRing(read_of(data))
    assert numbers(event_ring.new()[0]) == [1, 2]
    data[:] = memory_of(ring([slot(5), slot(2), slot(3), slot(4)], 5))
    assert (numbers(event_ring.new()[0]), event_ring.new()) == ([3, 4, 5], ([], 0))
    data[:] = memory_of(ring([slot(13), slot(14), slot(11), slot(12)], 14))
    events, lost = event_ring.new()
    assert (numbers(events), lost) == ([11, 12, 13, 14], 5)


def test_an_entry_that_is_overwritten_while_it_is_copied_is_lost_and_not_believed() -> None:
    """The writer takes the number away, writes, and gives another: whatever of that happens between two readings."""
    whole = memory_of(ring([slot(1), slot(2), slot(3), slot(4)], 4))
    first = EVENTS_AT + struct.unpack_from("<Q", whole, EVENTS_AT)[0] - ADDRESS - EVENTS_AT  # of the ring
    stages = [whole[:] for _ in range(3)]
    for stage in stages:
        struct.pack_into("<QQ", stage, first, 0, 77)
    struct.pack_into("<Q", stages[1], first, 5)
    struct.pack_into("<Q", stages[2], first, 1 << 63)
    for torn, other in itertools.product(stages, [*stages, whole]):
        for order in ((torn, other), (other, torn)):
            turn = itertools.count()

            def read(offset: int, size: int, order: tuple[bytearray, ...] = order, turn: object = turn) -> bytes:
                is_entry = offset >= first
                now = order[next(turn) % 2] if is_entry else whole  # type: ignore[call-overload]
                return bytes(now[offset : offset + size])

            events, lost = EventRing(read).new()
            assert (numbers(events), lost) == ([2, 3, 4], 1)


@pytest.mark.parametrize(
    ("registry", "says"),
    [
        (ring([], 0), "its runtime keeps no events"),
        (ring([slot(1)], 1, header_size=HEADER_SIZE_WITHOUT_EVENTS), "its runtime keeps no events"),
        (ring([slot(1)], 1, abi_version=2), "of version 2"),
        (ring([slot(1)], 1, mapping_size=HEADER_SIZE), "do not lie within its mapping"),
    ],
)
def test_without_a_ring_that_can_be_read(registry: Registry, says: str) -> None:
    with pytest.raises(RegistryError, match=says):
        EventRing(read_of(memory_of(registry.changed(mapping_size=-1)) if "keeps" in says else memory_of(registry)))


@pytest.mark.parametrize(
    ("address", "count", "stride"),
    [
        (ADDRESS - 48, 4, 48),
        (ADDRESS, 4, 48),
        (ADDRESS + 528, 1 << 31, 48),
        (ADDRESS + 528, 1 << 20, 48),
        (ADDRESS + 528, 4, 0),
        (ADDRESS + 528, 4, 47),
        (ADDRESS + 528, 4, 1 << 30),
        ((1 << 64) - 48, 1, 48),
    ],
)
def test_a_table_that_can_not_be(address: int, count: int, stride: int) -> None:
    data = memory_of(ring([slot(1), slot(2)], 2))
    struct.pack_into("<QII", data, EVENTS_AT, address, count, stride)
    with pytest.raises(RegistryError, match="do not lie within its mapping"):
        EventRing(read_of(data))


def test_absurd_counters_end_soon_and_are_not_believed() -> None:
    data = memory_of(ring([slot(1), slot(2), slot(3), slot(4)], 4))
    event_ring = EventRing(read_of(data))
    struct.pack_into("<Q", data, WRITTEN_AT, (1 << 64) - 1)
    assert event_ring.new() == ([], (1 << 64) - 1)
    struct.pack_into("<Q", data, WRITTEN_AT, 3)
    with pytest.raises(RegistryError, match="fewer events than before"):
        event_ring.new()


def test_any_bytes_are_an_answer_or_an_error() -> None:
    data = memory_of(ring([slot(1), slot(2), slot(3), slot(4)], 4))
    for at in range(EVENTS_AT, len(data.rstrip(b"\0"))):
        for value in (0, 0x7F, 0xFF):
            wrong = data[:]
            wrong[at] = value
            try:
                events, lost = EventRing(read_of(wrong)).new()
            except RanklensError:
                continue
            assert len(events) <= 4 and lost >= 0
            assert all(event.rank >= -1 and isinstance(event.kind, str) for event in events)
