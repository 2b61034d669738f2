"""What ranks and processing elements have done so far, as a registry counts it: times, and messages by receiver.

Takes a target and its rank table; gives seconds and counts since the ranks began. Every field that is read is [live]
and meaningful alone, so that nothing has to stand still; a table that can't be believed is left out, with the reason.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.registry import layout
from pieglobalsfind.decoders.registry.event_ring import byte_order
from pieglobalsfind.decoders.registry.layout import (
    ElementLoadRecord,
    RankLoadRecord,
    RecordTable,
    SentRecord,
    parse_header,
    parse_load_tables,
    parse_records,
)
from pieglobalsfind.decoders.registry.read_consistent import find
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import MIGRATED_OUT, RUNNING, Absent, RankTable
from pieglobalsfind.target import Target

TRIES = 10  # readings of one element, until nothing has changed in between
NANOSECOND = 1e-9
LARGEST_CLOCK = 1e11  # ticks per second that are believed, and one per second at least

_NO_TABLE = Absent("its runtime does not count load", "a runtime says so by `loads` in rank_debug.h")
_NO_CLOCK = Absent("how fast its clock runs is not known yet: no rank has waited or ended", "ask again later")


@dataclass(frozen=True)
class Sent:
    """Messages from one rank to another, and the bytes of their data; those of collective calls apart."""

    receiver: int
    messages: int
    bytes: int
    collective_messages: int
    collective_bytes: int


@dataclass(frozen=True)
class RankLoad:
    """`busy`: seconds that the rank had its processing element in this process."""

    rank: int
    busy: Union[float, Absent]
    sent: Union[tuple[Sent, ...], Absent]


@dataclass(frozen=True)
class ElementLoad:
    """Seconds since a processing element began: without a rank to run, and those that ranks had in turn."""

    element: int
    kernel_thread: int
    elapsed: Union[float, Absent]
    idle: Union[float, Absent]
    undivided: Union[float, Absent]


@dataclass(frozen=True)
class ProcessLoad:
    """One process's; `how` says what counts, where it is not a registry."""

    ranks: tuple[RankLoad, ...]
    elements: tuple[ElementLoad, ...]
    how: str = ""


def read_load(target: Target, table: RankTable) -> Union[ProcessLoad, Absent]:
    """Read the counts of a process's registry, or say why there are none."""
    registry = find(target, target.maps())
    if registry is None:
        return Absent("it has no registry")
    data = target.read(registry[0], layout.HEADER_SIZE)
    order = byte_order(data)
    header, _ = parse_header(data, order)
    ranks, elements = parse_load_tables(data, order)
    room = (header.mapping_address, header.mapping_address + header.mapping_size)
    if not ranks.count or not elements.count:
        return _NO_TABLE
    if not all(_is_within(each, kind, room) for each, kind in ((ranks, RankLoadRecord), (elements, ElementLoadRecord))):
        return Absent("the registry is damaged, its loads do not lie within its mapping")
    return _Reader(target, table, order, ranks, elements).read()


def _is_within(table: RecordTable, kind: type, room: tuple[int, int]) -> bool:
    size = table.count * table.stride
    is_sized = layout.record_size(kind) <= table.stride <= layout.LARGEST_STRIDE
    return is_sized and room[0] <= table.address and table.address + size <= room[1]


class _Reader:
    """Reads one process's tables."""

    def __init__(self, target: Target, table: RankTable, order: str, ranks: RecordTable, elements: RecordTable) -> None:
        self._target = target
        self._table = table
        self._order = order
        self._ranks = ranks
        self._elements = elements

    def read(self) -> Union[ProcessLoad, Absent]:
        readings = [self._element(index) for index in range(self._elements.count)]
        records = self._records(RankLoadRecord, self._ranks)
        now = time.monotonic_ns() if self._target.is_live else None
        speed = best_speed([reading.record for reading in readings])
        clocks = [_Clock(reading.record, speed, now) for reading in readings]
        open_times: dict[int, Union[float, Absent]] = {}
        for reading, clock in zip(readings, clocks):
            if reading.runs is not None and not reading.record.turns:
                open_times[reading.runs] = clock.open_time
        here = {rank.rank for rank in self._table.ranks}
        ranks = tuple(
            RankLoad(number, _busy(record, speed, open_times.get(number, 0.0)), self._sent(record.sent))
            for number, record in enumerate(records)
            if number in here
        )
        elements = tuple(
            _element_load(index, reading, clock)
            for index, (reading, clock) in enumerate(zip(readings, clocks))
            if reading.record.since
        )
        return ProcessLoad(ranks, elements)

    def _records(self, kind: type, table: RecordTable) -> list:  # type: ignore[type-arg]
        data = self._target.read(table.address, table.count * table.stride)
        return parse_records(kind, data, table.stride, self._order)

    def _element(self, index: int) -> _Reading:
        """The element's record, and which rank it ran while the record did not change."""
        place = RecordTable(self._elements.address + index * self._elements.stride, 1, self._elements.stride)
        ranks = [rank for rank in self._table.ranks if rank.processing_element == index and rank.state != MIGRATED_OUT]
        (before,) = self._records(ElementLoadRecord, place)
        for _ in range(TRIES):
            runs = self._running(ranks)
            (after,) = self._records(ElementLoadRecord, place)
            if after == before:
                break
            before = after
        return _Reading(before, runs)

    def _running(self, ranks: Sequence) -> Optional[int]:  # type: ignore[type-arg]
        """Which of them runs now, by its record."""
        if not self._target.is_live:
            return next((rank.rank for rank in ranks if rank.state == RUNNING), None)
        for rank in ranks:
            try:
                (state,) = struct.unpack(self._order + "I", self._target.read(rank.record + layout.STATE_AT, 4))
            except MemoryUnreadable:
                continue
            if state == layout.STATE_RUNNING:
                return int(rank.rank)
        return None

    def _sent(self, address: int) -> Union[tuple[Sent, ...], Absent]:
        if not address:
            return ()
        try:
            count, stride = struct.unpack(self._order + layout.SENT_TABLE_FORM, self._target.read(address, 8))
            good = layout.record_size(SentRecord) <= stride <= layout.LARGEST_STRIDE
            if not good or count > max(8, 4 * self._table.rank_count):
                return Absent("the table of its messages is damaged")
            entries = parse_records(SentRecord, self._target.read(address + 8, count * stride), stride, self._order)
        except MemoryUnreadable:
            return Absent("the table of its messages is not in what was read")
        messages = [Sent(entry.receiver - 1, *entry[2:]) for entry in entries if entry.receiver]
        receivers = {sent.receiver for sent in messages}
        if len(receivers) < len(messages) or any(receiver >= self._table.rank_count for receiver in receivers):
            return Absent("the table of its messages is damaged")
        return tuple(sorted(messages, key=lambda sent: sent.receiver))


@dataclass(frozen=True)
class _Reading:
    record: ElementLoadRecord
    runs: Optional[int]


class _Clock:
    """One element's ticks as seconds. `speed` is in ticks per second, `now` in nanoseconds of the target's machine."""

    def __init__(self, record: ElementLoadRecord, speed: Optional[float], now: Optional[int]) -> None:
        self.speed = speed
        counted = self.seconds(record.since - record.began)
        self.counted = counted
        self.open_time: Union[float, Absent] = 0.0
        if isinstance(counted, Absent):
            self.open_time = counted
        elif now is not None:
            self.open_time = max((now - record.began_monotonic) * NANOSECOND - counted, 0.0)

    def seconds(self, ticks: int) -> Union[float, Absent]:
        """Ticks as seconds."""
        if ticks <= 0:
            return 0.0
        return ticks / self.speed if self.speed else _NO_CLOCK


def ticks_per_second(record: ElementLoadRecord) -> Optional[float]:
    """How fast an element's clock runs; None while it has not been measured."""
    ticks, nanoseconds = record.later - record.began, record.later_monotonic - record.began_monotonic
    if ticks <= 0 or nanoseconds <= 0:
        return None
    speed = ticks / (nanoseconds * NANOSECOND)
    return speed if 1 <= speed <= LARGEST_CLOCK else None


def best_speed(records: Sequence[ElementLoadRecord]) -> Optional[float]:
    """Ticks per second, by the element that has measured them for longest: all count the same ones."""
    longest_first = sorted(records, key=lambda record: record.later_monotonic - record.began_monotonic, reverse=True)
    return next((speed for speed in map(ticks_per_second, longest_first) if speed), None)


def plus(first: Union[float, Absent], second: Union[float, Absent]) -> Union[float, Absent]:
    """The sum, or why it can't be had."""
    if isinstance(first, Absent):
        return first
    return second if isinstance(second, Absent) else first + second


def _busy(record: RankLoadRecord, speed: Optional[float], open_time: Union[float, Absent]) -> Union[float, Absent]:
    if not record.busy:
        return open_time
    return plus(record.busy / speed, open_time) if speed else _NO_CLOCK


def _element_load(index: int, reading: _Reading, clock: _Clock) -> ElementLoad:
    record = reading.record
    idle, undivided = clock.seconds(record.idle), clock.seconds(record.undivided)
    if record.turns:
        undivided = plus(undivided, clock.open_time)
    elif reading.runs is None:
        idle = plus(idle, clock.open_time)
    return ElementLoad(index, record.kernel_thread, plus(clock.counted, clock.open_time), idle, undivided)


def by_rank(load: ProcessLoad) -> Mapping[int, RankLoad]:
    """The ranks' loads by their numbers."""
    return {rank.rank: rank for rank in load.ranks}
