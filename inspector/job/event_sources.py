"""The processes of a job as sources of events, and their events merged by time.

Takes members of a job; hands out what happens in the order in which it happened. It looks at a counter in each
process's registry now and then, stops no process, and learns of a process's end from the kernel.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Union

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.registry.event_ring import Event, EventRing, Read
from pieglobalsfind.decoders.registry.memfd import open_registry
from pieglobalsfind.decoders.registry.read_consistent import find
from pieglobalsfind.errors import RanklensError, RegistryError, TargetError
from pieglobalsfind.jobs.members import JobMember
from pieglobalsfind.target import Target

from .flight_recorder import is_running

HINTS = {"AMPI": "link the hook module into it (docs/ampi.md)"}  # by runtime: how to get a registry
OLDEST = 3  # rounds that an event is held back for earlier ones at most


@dataclass(frozen=True)
class LostEvents:
    """So many events of a process were replaced by newer ones before they were read."""

    monotonic: int
    process: int
    count: int


@dataclass(frozen=True)
class Ended:
    """A process has ended, or can't be read any more; `why` says so."""

    monotonic: int
    process: int
    pid: int
    why: str


Notice = Union[Event, LostEvents, Ended]


@dataclass(frozen=True)
class EventProcess:
    """A process that is followed, as headings name it: `node` is its host, `room` how many events it remembers."""

    index: int
    pid: int
    node: str
    room: int


@dataclass(frozen=True)
class EventHeading:
    """A job's name, the number of its processes, the processes that are followed, and what is amiss."""

    name: str
    count: int
    processes: tuple[EventProcess, ...]
    problems: tuple[str, ...] = ()


class EventSource:
    """One process, or a file of one. Raises `RanklensError` if it keeps no events, or may not be read."""

    def __init__(self, member: JobMember) -> None:
        self.member = member
        self.note = ""
        self.descriptor = -1  # readable once the process has ended
        self._alive = not member.core
        if member.core:
            self.ring = EventRing(reader(member.open()))
            return
        with suppress(AttributeError, OSError):  # before Linux 5.3: is_running() tells
            self.descriptor = os.pidfd_open(member.pid)
        file = open_registry(member.pid)
        if file is None:
            self.note = f"{member.name} has closed its registry's file: what it does last before it ends may be missed"
        self.ring = EventRing(file.read if file is not None else reader(member.open()))
        if self.has_ended():
            raise TargetError(f"{member.name} has ended")

    @property
    def process(self) -> EventProcess:
        """Return the process."""
        return EventProcess(self.member.index, self.member.pid, self.ring.node, self.ring.room)

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        if self._alive:
            self._alive = not _is_ready(self.descriptor) if self.descriptor >= 0 else is_running(self.member.pid)
        return not self._alive


def _is_ready(descriptor: int) -> bool:
    waiter = select.poll()
    waiter.register(descriptor, select.POLLIN)
    return bool(waiter.poll(0))


def reader(target: Target) -> Read:
    """Return how to read a target's registry; raises `RegistryError` without one."""
    registry = find(target, target.maps())
    if registry is None:
        raise RegistryError(f"{target.description} has no registry", HINTS.get(decode(target).runtime, ""))
    start, _ = registry
    return lambda offset, size: target.read(start + offset, size)


class JobEvents:
    """Events of several processes in the order of their times.

    A process may publish an event a little after its time, and is read a little after another: what is younger than the
    round before is held back for what may still come, `OLDEST` rounds at most (where clocks differ).
    """

    def __init__(self, sources: Sequence[EventSource]) -> None:
        self._sources = list(sources)
        self._held: list[tuple[int, int, int, int, Notice]] = []  # time, process, order, age
        self._order = 0
        self._before = 0

    @property
    def is_over(self) -> bool:
        """Return whether every process has ended."""
        return not self._sources

    def wait(self, seconds: float, asked: int) -> None:
        """Until a process ends, the descriptor `asked` can be read, or the time has passed."""
        waiter = select.poll()
        waiter.register(asked, select.POLLIN)
        for source in self._sources:
            if source.descriptor >= 0:
                waiter.register(source.descriptor, select.POLLIN)
        waiter.poll(max(0.0, seconds * 1000))

    def look(self) -> Iterator[Notice]:
        """What is certain by now."""
        now = time.monotonic_ns()
        held = [(when, process, order, age + 1, notice) for when, process, order, age, notice in self._held]
        for source in list(self._sources):
            held += self._read(source, now)
        held.sort(key=lambda entry: entry[:3])
        old = [index for index, entry in enumerate(held) if entry[0] <= self._before or entry[3] >= OLDEST]
        end = old[-1] + 1 if old else 0
        self._held, self._before = held[end:], now
        for *_, notice in held[:end]:
            yield notice

    def rest(self) -> Iterator[Notice]:
        """What is held back still."""
        held, self._held = self._held, []
        for *_, notice in sorted(held, key=lambda entry: entry[:3]):
            yield notice

    def _read(self, source: EventSource, now: int) -> Iterator[tuple[int, int, int, int, Notice]]:
        has_ended, process = source.has_ended(), source.member.index
        try:
            events, lost = source.ring.new()
        except RanklensError as error:
            yield self._entry(Ended(now, process, source.member.pid, f"can't be read any more, {error.sentence}"))
            self._sources.remove(source)
            return
        if lost:
            yield self._entry(LostEvents(events[0].monotonic if events else now, process, lost))
        for event in events:
            yield self._entry(event)
        if has_ended:
            if not source.member.core:
                yield self._entry(Ended(now, process, source.member.pid, "has ended"))
            self._sources.remove(source)

    def _entry(self, notice: Notice) -> tuple[int, int, int, int, Notice]:
        self._order += 1
        return notice.monotonic, notice.process, self._order, 0, notice
