"""The ring of events in a registry: who was created, left, arrived and exited, and when.

Takes a way of reading the registry's mapping; gives what was written since it was asked last, and how many events are
lost because newer ones took their places. It never waits, and reads no more than the ring has room for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import EventEntry, parse_events_table, parse_header, parse_records
from pieglobalsfind.errors import RegistryError

KINDS = {
    layout.BEFORE_COPIES: "copies begin",
    layout.AFTER_COPIES: "copies made",
    layout.CREATED: "created",
    layout.BEFORE_PACK: "leaves",
    layout.AFTER_UNPACK: "arrived",
    layout.RANK_EXITED: "exited",
}
MOST_ENTRIES = 1 << 24
AT_ONCE = 4096  # entries

Read = Callable[[int, int], bytes]
"""Bytes of the registry's mapping, by offset and size; raises `RanklensError` if they can't be had."""


@dataclass(frozen=True)
class Event:
    """`number` counts a process's events from 1; times are nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME.

    `process` is the one that reports it, `other_process` the one that the rank leaves for or comes from. -1 stands for
    no rank (all of them), no processing element, and a process that is not known. `moves` is 0 where the
    runtime does not count.
    """

    number: int
    monotonic: int
    realtime: int
    kind: str
    rank: int
    processing_element: int
    process: int
    other_process: int
    moves: int


class EventRing:
    """Of one process. Raises `RegistryError` if there is no ring, or none that can be believed."""

    def __init__(self, read: Read) -> None:
        data = read(0, layout.HEADER_SIZE)
        self._read = read
        self._order = byte_order(data)
        header, _ = parse_header(data, self._order)
        if header.abi_version != layout.ABI_VERSION:
            raise RegistryError(f"the registry is of version {header.abi_version}, this reader knows version 1")
        table = parse_events_table(data, self._order)
        if table.count == 0:
            raise RegistryError("its runtime keeps no events", "it was built with an older ranklens: rebuild it")
        start = table.address - header.mapping_address
        end = start + table.count * table.stride
        good = layout.record_size(EventEntry) <= table.stride <= layout.LARGEST_STRIDE and table.count <= MOST_ENTRIES
        if not good or not layout.WITH_EVENTS_SIZE <= start < end <= header.mapping_size:
            raise RegistryError("the registry is damaged, its events do not lie within its mapping")
        self.process = header.process_index
        self.job_id = layout.text(header.job_id)
        self.node = layout.text(header.node)
        self.room = table.count
        self._start = start
        self._stride = table.stride
        self._seen = 0

    def new(self) -> tuple[list[Event], int]:
        """What was written since the last call (at first: all that is left), oldest first, and how many are lost."""
        (written,) = struct.unpack(self._order + "Q", self._read(layout.EVENTS_WRITTEN_AT, 8))
        if written < self._seen:
            raise RegistryError("the registry is damaged, it has fewer events than before")
        first = max(self._seen, written - self.room)
        events = [event for start, end in self._runs(first, written) for event in self._whole(start, end)]
        lost = written - self._seen - len(events)
        self._seen = written
        return events, lost

    def _runs(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Numbers less one [start, end) of entries that lie after one another."""
        while first < end:
            stop = min(end, first + AT_ONCE, first - first % self.room + self.room)
            yield first, stop
            first = stop

    def _whole(self, start: int, end: int) -> Iterator[Event]:
        """Those that no later entry has begun to replace while they were copied: their numbers still are there."""
        at, size = self._start + start % self.room * self._stride, (end - start) * self._stride
        entries = parse_records(EventEntry, self._read(at, size), self._stride, self._order)
        again = parse_records(EventEntry, self._read(at, size), self._stride, self._order)
        for number, event_entry, later in zip(range(start + 1, end + 1), entries, again):
            if event_entry.number == later.number == number:
                yield self._event(event_entry)

    def _event(self, event_entry: EventEntry) -> Event:
        return Event(
            event_entry.number,
            event_entry.monotonic,
            event_entry.realtime,
            KINDS.get(event_entry.kind, f"event {event_entry.kind}"),
            max(event_entry.rank, -1),
            index_of(event_entry.processing_element),
            self.process,
            index_of(event_entry.other_process),
            event_entry.moves,
        )


def index_of(index: int) -> int:
    """Return an index, -1 for none."""
    return -1 if index == layout.NONE else index


def byte_order(data: bytes) -> str:
    """struct's sign, by the magic; raises `RegistryError`."""
    for order in "<>":
        if len(data) == layout.HEADER_SIZE and struct.unpack_from(order + "Q", data)[0] == layout.MAGIC:
            return order
    raise RegistryError("the registry is damaged, it does not begin with its magic")
