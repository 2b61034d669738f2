"""`inspector events --mpi`: merge the events of all hosts by time; the first collector prints them.

Takes rounds of one host's notices; sends them to the first collector, which merges them by the hosts' clocks. What it
has heard is held back for a moment, because other hosts may still tell of earlier events. A collector that is silent
for too long is named and given up.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from pieglobalsfind.decoders.registry.event_ring import Event
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.job_on_host import SeveralJobsError
from pieglobalsfind.jobs.members import missing
from pieglobalsfind.shell.exit_status import print_error

from ..job.event_sources import EventHeading, Notice
from .collectors import ENDING, begin
from .mpi_channel import Begun, ChannelMessage, Ending, speak
from .sealed_message import DamagedMessageError, opened, sealed
from .worker_process import LostWorker, Worker, first_of

TOLD = 6  # tag
BEAT = 1.0  # seconds between two messages, though nothing has happened
HELD = 300_000_000  # nanoseconds that an event waits for earlier ones of other hosts
FOR_EVER = 1e9  # seconds

Rounds = Iterator[list[Notice]]


@dataclass(frozen=True)
class HostRound:
    """What a collector tells: its host, in the first message its processes, and notices with their times.

    Times are nanoseconds of the host's CLOCK_REALTIME. `is_over`: nothing follows.
    """

    host: str
    begins: Optional[EventHeading] = None
    notices: tuple[tuple[int, Notice], ...] = ()
    is_over: bool = False


def timed(notices: list[Notice]) -> tuple[tuple[int, Notice], ...]:
    """Notices with their times."""
    offset = time.time_ns() - time.monotonic_ns()
    return tuple(
        (notice.realtime if isinstance(notice, Event) else notice.monotonic + offset, notice) for notice in notices
    )


def past(rounds: Rounds) -> tuple[tuple[int, Notice], ...]:
    """What processes remember: the second round has it, as the first holds everything back."""
    return timed([*next(rounds, []), *next(rounds, [])])


@dataclass
class HostStreams:
    """What collectors have told so far, by their places."""

    size: int
    timeout: float
    begins: dict[int, EventHeading] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    _heard: dict[int, float] = field(default_factory=dict)
    _held: list[tuple[int, int, int, Notice]] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self._heard = dict.fromkeys(range(self.size), time.monotonic())

    def take(self, place: int, host_round: HostRound) -> None:
        """Enter what a collector has told."""
        self._heard[place] = time.monotonic()
        self.hosts[place] = host_round.host
        if host_round.begins is not None:
            self.begins[place] = host_round.begins
        for when, notice in host_round.notices:
            self._count += 1
            heapq.heappush(self._held, (when, place, self._count, notice))
        if host_round.is_over:
            self.over.add(place)

    def give_up(self) -> Iterator[str]:
        """A sentence about each collector that has been silent for too long; it is waited for no more."""
        now = time.monotonic()
        for place in set(range(self.size)) - self.over:
            if now - self._heard[place] > self.timeout:
                yield self.give_up_one(place, "it does not answer")

    def give_up_one(self, place: int, why: str) -> str:
        """Wait for a collector no more; the sentence that says so."""
        self.over.add(place)
        host = self.hosts.get(place, "unknown")
        return f"the events of collector {place} of {self.size} on host {host} are missing from now on: {why}"

    def ready(self, until: int) -> Iterator[Notice]:
        """What was heard of up to a time, in order."""
        owners = {
            process.index: place
            for place in sorted(self.begins, reverse=True)
            for process in self.begins[place].processes
        }
        while self._held and self._held[0][0] <= until:
            _, place, _, notice = heapq.heappop(self._held)
            if owners.get(notice.process, place) == place:  # several collectors of one host tell of the same processes
                yield notice

    def heading(self) -> EventHeading:
        """What all collectors have said; raises `SeveralJobsError` if they follow several."""
        headings = [self.begins[place] for place in sorted(self.begins)]
        names = {heading.name for heading in headings if heading.processes}
        if len(names) > 1:
            raise SeveralJobsError(names)
        processes = {process.index: process for heading in reversed(headings) for process in heading.processes}
        count = max((heading.count for heading in headings), default=0)
        problems = [
            problem
            for heading in headings
            if heading.processes or not processes
            for problem in heading.problems
            if problem not in missing((process.index for process in heading.processes), heading.count)
        ]
        return EventHeading(
            next(iter(names), "the job"),
            count,
            tuple(processes[index] for index in sorted(processes)),
            tuple(dict.fromkeys((*missing(processes, count), *problems))),
        )

    @property
    def is_over(self) -> bool:
        """Return whether nothing follows from any."""
        return len(self.over) == self.size

    @property
    def has_begun(self) -> bool:
        """Return whether every collector that is waited for has said what its processes are."""
        return all(place in self.begins or place in self.over for place in range(self.size))


class EventCollector:
    """One of several; the first alone hears of the others."""

    def __init__(self, timeout: float) -> None:
        self._speaker = Worker(speak)
        self._timeout = timeout
        begun = begin(self._speaker, timeout)
        if isinstance(begun, LostWorker):
            raise RanklensError(f"collectors on other hosts can't be heard: MPI_Init {begun.reason}")
        self._begun: Begun = begun
        self.is_first = begun.place == 0

    def tell(self, begins: EventHeading, rounds: Rounds) -> None:
        """Send what happens on this host to the first collector, to its end.

        What its processes remember goes with the first message, so that no host's older events come after it.
        """
        self._say(HostRound(self._begun.host, begins, past(rounds)))
        sent_at = time.monotonic()
        for notices in rounds:
            if notices or time.monotonic() - sent_at >= BEAT:
                self._say(HostRound(self._begun.host, notices=timed(notices)))
                sent_at = time.monotonic()
        self._say(HostRound(self._begun.host, is_over=True))

    def merged(
        self, streams: HostStreams, begins: EventHeading, rounds: Rounds, every: float
    ) -> Iterator[list[Notice]]:
        """Everything from all hosts, in rounds; the first one comes once all have said what their processes are."""
        streams.take(0, HostRound(self._begun.host, begins, past(rounds)))
        while not streams.is_over:
            notices = next(rounds, None)
            if notices is None:
                time.sleep(every)
            streams.take(0, HostRound(self._begun.host, notices=timed(notices or []), is_over=notices is None))
            self._hear(streams)
            for sentence in streams.give_up():
                print_error("inspector", sentence)
            if streams.has_begun:
                yield list(streams.ready(time.time_ns() - HELD))
        yield list(streams.ready(time.time_ns() + int(FOR_EVER * 1e9)))

    def streams(self) -> HostStreams:
        """Where the first collector keeps what it hears."""
        return HostStreams(self._begun.size, self._timeout)

    def end(self) -> None:
        """Have MPI end, which waits for all collectors; the first has given up those that will not."""
        until = time.monotonic() + (ENDING if self.is_first else FOR_EVER)
        self._speaker.send(None, until)
        while not isinstance(self._speaker.receive(until), (Ending, LostWorker)):
            pass
        self._speaker.close(time.monotonic() + ENDING)

    def _say(self, host_round: HostRound) -> None:
        self._speaker.send(ChannelMessage(0, TOLD, sealed(host_round)), time.monotonic() + self._timeout)

    def _hear(self, streams: HostStreams) -> None:
        while first_of([self._speaker], 0.0) is not None:
            message = self._speaker.receive(time.monotonic() + self._timeout)
            if isinstance(message, LostWorker):
                print_error("inspector", f"the other collectors can't be heard any more: MPI {message.reason}")
                streams.over.update(range(1, streams.size))
                return
            if message.place in streams.over:
                continue  # it was given up
            try:
                streams.take(message.place, opened(message.content, HostRound))
            except DamagedMessageError as error:
                print_error("inspector", streams.give_up_one(message.place, f"what it sends {error.sentence}"))
