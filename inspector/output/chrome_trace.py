"""Events in the Trace Event Format, which Perfetto and chrome://tracing open.

Takes notices in the order of time; writes one JSON object: a process of the job is a process of the trace, a rank is a
thread of it, and its stay there a slice. Each migration is a slice, too, and a flow leads from it to the next stay.
What began before the first event, or goes on after the last, is drawn to there, and says so.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pieglobalsfind.decoders.registry.event_ring import Event
from pieglobalsfind.shell.atomic_file import write_whole

from ..job.event_sources import Notice

HINT = "name another file by --chrome"
MOST_EVENTS = 1_000_000  # what is kept until it is written; older ones are left out
BEGINS, ENDS = ("created", "arrived"), ("leaves", "exited")

Row = dict[str, object]


@dataclass
class Trace:
    """`pids` are the processes', by their index in the job."""

    name: str
    pids: Mapping[int, int]
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    _count: int = 0

    def add(self, notice: Notice) -> None:
        """Add an event."""
        if isinstance(notice, Event):
            self._events.append(notice)
            self._count += 1

    def write(self, place: Path) -> None:
        """In one step; raises `UsageError` if it can't be written."""
        write_whole(place, json.dumps(self.content()) + "\n", HINT)

    def content(self) -> Row:
        """The whole trace."""
        events = sorted(self._events, key=lambda event: event.monotonic)
        other = {"job": self.name, "events": self._count, "left_out": self._count - len(events)}
        drawing = TraceDrawing(self.pids, events[0].monotonic, events[-1].monotonic) if events else None
        rows = list(drawing.rows(events)) if drawing is not None else []
        return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": other}


@dataclass
class TraceDrawing:
    """Between two moments, nanoseconds of CLOCK_MONOTONIC."""

    pids: Mapping[int, int]
    start: int
    end: int
    _stays: dict[tuple[int, int], Event] = field(default_factory=dict)  # by process and rank: how it began
    _moving: dict[int, tuple[Event, int]] = field(default_factory=dict)  # by rank: how it left, the flow's number
    _flows: int = 0

    def rows(self, events: list[Event]) -> Iterator[Row]:
        """Names first, then slices and flows as they end, then what goes on."""
        yield from self._names(events)
        for event in events:
            if event.rank < 0:
                yield self._row("i", event.kind, event, event.monotonic, s="p")
            elif event.kind in BEGINS:
                yield from self._begin(event)
            elif event.kind in ENDS:
                yield from self._finish(event)
            else:
                yield self._row("i", event.kind, event, event.monotonic, s="t")
        for begun in self._stays.values():
            yield self._slice(f"rank {begun.rank}", "stay", begun, begun.monotonic, self.end, goes_on=True)
        for left, _ in self._moving.values():
            yield self._slice(_moving_name(left), "migration", left, left.monotonic, self.end, goes_on=True)

    def _begin(self, event: Event) -> Iterator[Row]:
        if event.kind == "arrived" and event.rank in self._moving:
            left, flow = self._moving.pop(event.rank)
            yield self._slice(_moving_name(left), "migration", left, left.monotonic, event.monotonic)
            if left.moves == event.moves:
                yield self._row("s", "migration", left, left.monotonic, id=flow)
                yield self._row("f", "migration", event, event.monotonic, id=flow, bp="e")
        self._stays[event.process, event.rank] = event

    def _finish(self, event: Event) -> Iterator[Row]:
        begun = self._stays.pop((event.process, event.rank), None)
        since = self.start if begun is None else begun.monotonic
        yield self._slice(
            f"rank {event.rank}",
            "stay",
            begun or event,
            since,
            event.monotonic,
            began_before=begun is None,
            ends=event.kind,
        )
        if event.kind == "leaves":
            self._flows += 1
            self._moving[event.rank] = event, self._flows

    def _slice(self, name: str, category: str, event: Event, start: int, end: int, **arguments: object) -> Row:
        details = {key: value for key, value in arguments.items() if value is not False}
        details.update(processing_element=event.processing_element, moves=event.moves)
        row = self._row("X", name, event, start, dur=max(0, end - start) / 1000, args=details)
        return {**row, "cat": category}

    def _row(self, phase: str, name: str, event: Event, when: int, **more: object) -> Row:
        row: Row = {"ph": phase, "name": name, "cat": "migration" if phase in "sf" else "event"}
        return {**row, "ts": when / 1000, "pid": self._pid(event.process), "tid": max(event.rank, 0), **more}

    def _pid(self, process: int) -> int:
        return self.pids.get(process) or process

    def _names(self, events: list[Event]) -> Iterator[Row]:
        for process in sorted({event.process for event in events}):
            pid = self._pid(process)
            yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"process {process}"}}
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": process}}
            for rank in sorted({event.rank for event in events if event.process == process and event.rank >= 0}):
                yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": rank, "args": {"name": f"rank {rank}"}}
                yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": rank, "args": {"sort_index": rank}}


def _moving_name(left: Event) -> str:
    if left.other_process == left.process:
        return "is written to a checkpoint"
    return "leaves" if left.other_process < 0 else f"moves to process {left.other_process}"
