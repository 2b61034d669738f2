"""`inspector report|stacks|waits --mpi`: a collector on each node under the site's own MPI launcher, one answer of all.

Takes a job's name and what is to be read; each collector reads the job's processes on its own node. Several may
need the same debug information: one parses it, and hands it round. Findings are merged on the way to the first in a
tree. What reads, and what speaks by MPI, are processes of their own: if one dies or hangs on a node, its part is
reported as missing, and the rest is reported in bounded time.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Optional, Union

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs.job_on_host import SeveralJobsError
from pieglobalsfind.ranks.rankset import compact

from .host_reading import BuildIds, CollectedPart, Declared, Kind, Reading, read
from .mpi_channel import Begun, ChannelMessage, Ending, Unavailable, speak
from .sealed_message import DamagedMessageError, opened, sealed
from .worker_process import LostWorker, Worker, first_of

NAMED, NEEDED, ASKED, HANDED, GATHERED = 1, 2, 3, 4, 5  # tags
# Where a launcher says which place in its launch a process has: Hydra and its kin, PMIx, Open MPI, Slurm.
PLACES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
HAND = 0.5  # of the time is for what is handed round; then each parses what it lacks, and reads for all of it
PATIENCE = 8  # a collector whose children wait for others gives them an 8th of the time more
ENDING = 5.0  # seconds for MPI's own end
EACH_AT_ITS_TIME = "read on each host at a moment of its own; figures of different hosts may be of different moments"
NO_JOB = re.compile("no process of job|no job of ranks")  # a host without any
MOST_HOSTS = 8  # that are named in a sentence


@dataclass(frozen=True)
class Gathered(Generic[Kind]):
    """What came together of a job of `count` processes: `findings` at the first collector alone."""

    findings: Optional[Kind]
    name: str
    count: int


@contextmanager
def gathered(reading: Reading[Kind], timeout: float) -> Iterator[Gathered[Kind]]:
    """Read what is here and merge it with what the collectors behind this one tell; `timeout` in seconds."""
    speaker = Worker(speak)
    collector = None
    try:
        begun = begin(speaker, timeout)
        if isinstance(begun, LostWorker):
            yield alone(reading, timeout, begun)
            return
        collector = Collector(speaker, begun, reading, timeout)
        yield collector.gather()
    finally:
        speaker.close(collector.end() if collector is not None else 0.0)


def begin(speaker: Worker, timeout: float) -> Union[Begun, LostWorker]:
    """Wait for MPI_Init; raises `UsageError` where there is no MPI to call."""
    begun = speaker.receive(time.monotonic() + timeout)
    if isinstance(begun, Unavailable):
        raise UsageError(f"--mpi needs {begun.reason}", begun.hint)
    assert isinstance(begun, (Begun, LostWorker))
    return begun


def alone(reading: Reading[Kind], timeout: float, lost: LostWorker) -> Gathered[Kind]:
    """Without the others: by the first collector, as far as its launcher's word says that it is."""
    sentence = f"collectors on other hosts do not answer: MPI_Init {lost.reason}"
    if next((os.environ[place] for place in PLACES if place in os.environ), "") != "0":
        raise RanklensError(sentence, "the first collector reports what its own host has")
    reader = Worker(partial(read, reading, "the only collector that answers"), is_quiet=True)
    reader.receive(time.monotonic() + timeout)  # what it needs, which no collector sends it
    reader.send({}, time.monotonic() + timeout)
    piece: Union[CollectedPart[Kind], LostWorker] = reader.receive(time.monotonic() + timeout)
    reader.close()
    if isinstance(piece, LostWorker):
        raise RanklensError(
            f"no process of {reading.name} can be read here, and {sentence}", f"what reads {piece.reason}"
        )
    findings = replace(piece.findings, problems=(*piece.findings.problems, sentence))
    return whole(piece, findings)


def whole(piece: CollectedPart[Kind], findings: Kind) -> Gathered[Kind]:
    """What the first collector has; raises `SeveralJobsError` if it is of several jobs, as none was named."""
    if len(piece.jobs) > 1:
        raise SeveralJobsError(piece.jobs)
    return Gathered(findings, piece.name, piece.count)


class Collector(Generic[Kind]):
    """One of a binomial tree: the parent of a place is the place without its lowest bit."""

    def __init__(self, speaker: Worker, begun: Begun, reading: Reading[Kind], timeout: float) -> None:
        self.place, self.size = begun.place, begun.size
        self._speaker, self._reading = speaker, reading
        self._began, self._timeout = time.monotonic(), timeout
        self._hosts = {begun.place: begun.host}
        self._pieces: dict[int, CollectedPart[Kind]] = {}  # by place
        self._is_whole = True
        self._lost: Optional[LostWorker] = None  # why the speaker is
        self._reader = Worker(partial(read, reading, self._whose(self.place)), is_quiet=True)
        self._reads, self._reads_until = False, self._began + timeout
        self._needs: Optional[BuildIds] = None  # what the reader needs, once it has said so
        self._asked: set[bytes] = set()  # what the reader parses now
        self._needed: set[bytes] = set()  # what this collector has heard that anybody needs
        self._handed: Declared = {}

    def gather(self) -> Gathered[Kind]:
        """Merge what the collectors below have read, and pass it on."""
        if self.place:
            self._say(self.parent, NAMED, self._hosts)
        self._wait_for_pieces()
        self._reader.close()
        piece = self._merged()
        if self.place:
            self._say(self.parent, GATHERED, piece)
            if self._lost is not None:
                raise RanklensError(f"{self._whose(self.place)} no longer answers: MPI {self._lost.reason}")
            return Gathered(None, piece.name, piece.count)
        problems = tuple(self._silence(*silence) for silence in piece.silent)
        if self._lost is not None:
            problems += (f"the other collectors no longer answer: MPI {self._lost.reason}",)
        findings = replace(piece.findings, problems=(*piece.findings.problems, *problems))
        self._is_whole = not problems
        return whole(piece, findings)

    def end(self) -> float:
        """Have the speaker end, for which it waits for everybody else's; until when it may then take for itself."""
        until = self._until(self.level(0) + 1)
        if self._is_whole and self._lost is None:
            self._speaker.send(None, until)
        while self._is_whole and self._lost is None and first_of([self._speaker], until) is not None:
            message = self._speaker.receive(until)
            if isinstance(message, Ending):
                return time.monotonic() + ENDING
            self._lost = message if isinstance(message, LostWorker) else None
        return 0.0

    # ---- the tree ----

    @property
    def parent(self) -> int:
        """Return the collector above in the binomial tree."""
        return self.place & (self.place - 1)

    def children(self) -> list[int]:
        """Nearest first."""
        return [self.place | 1 << bit for bit in range(self.level(self.place)) if self.place | 1 << bit < self.size]

    def level(self, place: int) -> int:
        """How many follow one another behind a place, at most."""
        return (place & -place).bit_length() - 1 if place else (self.size - 1).bit_length()

    def last_behind(self, place: int) -> int:
        """Return the last collector below `place` in the binomial tree."""
        return min(self.size, place + (place & -place)) - 1

    # ---- time ----

    def _until(self, level: int) -> float:
        """Collectors farther from the leaves wait longer: nearer ones have yet to report which of theirs are silent."""
        return self._began + self._timeout * (HAND + 1 + level / PATIENCE)

    # ---- words ----

    def _whose(self, place: int) -> str:
        return f"collector {place} of {self.size} on host {self._hosts.get(place, 'unknown')}"

    def _silence(self, place: int, last: int) -> str:
        behind = range(place + 1, last + 1)
        hosts = ", ".join(sorted({self._hosts.get(collector, "unknown") for collector in behind})[:MOST_HOSTS])
        more = f"; neither do those below it: {compact(behind)} (hosts: {hosts})" if behind else ""
        return f"{self._whose(place)} does not answer{more}"

    # ---- messages ----

    def _say(self, to: int, tag: int, content: object) -> None:
        if self._lost is None:
            self._speaker.send(ChannelMessage(to, tag, sealed(content)), self._until(self.level(self.place)))

    def _hear(self) -> None:
        """One message, which is there."""
        message = self._speaker.receive(self._until(self.level(self.place)))
        if isinstance(message, LostWorker):
            self._lost = message
            return
        try:
            self._read(message)
        except DamagedMessageError as error:
            self._give_up(message, error)

    def _read(self, message: ChannelMessage) -> None:
        """Raises `DamagedMessageError`."""
        if message.tag == NAMED:
            self._meet(opened(message.content, dict))
        elif message.tag == NEEDED:
            self._need(*opened(message.content, tuple))
        elif message.tag == ASKED:
            self._parse(opened(message.content, frozenset))
        elif message.tag == HANDED:
            self._hand_down(opened(message.content, dict))
        else:
            self._pieces[message.place] = opened(message.content, CollectedPart)

    def _give_up(self, message: ChannelMessage, error: DamagedMessageError) -> None:
        """Report what was to be its findings; of anything else it is enough that who waits for it waits in vain."""
        if message.tag == GATHERED:
            sentence = f"{self._whose(message.place)} can't be believed: what it sends {error.sentence}"
            self._pieces[message.place] = CollectedPart(self._reading.kind(problems=(sentence,)))

    def _meet(self, hosts: dict[int, str]) -> None:
        """A child, or one below it, is there. Nothing is sent to one that is not: MPI's own process may die of that."""
        self._hosts.update(hosts)
        if self.place:
            self._say(self.parent, NAMED, hosts)

    # ---- debug information ----

    def _need(self, build_ids: BuildIds, place: int) -> None:
        """It is needed at `place`. The first collector has the first such place, and no other, parse it."""
        new = build_ids - self._needed
        self._needed |= new
        if not new:
            return
        if self.place:
            self._say(self.parent, NEEDED, (new, place))
        elif place:
            self._say(place, ASKED, new)
        else:
            self._parse(new)

    def _parse(self, build_ids: BuildIds) -> None:
        """Here, unless what reads is lost or waits for none any more."""
        if self._has_begun:
            self._hand_round(dict.fromkeys(build_ids))
        else:
            self._asked |= build_ids
            self._reader.send(build_ids, self._reads_until)

    def _hand_round(self, declared: Declared) -> None:
        """To all, from the first collector."""
        if self.place:
            self._say(0, HANDED, declared)
        else:
            self._hand_down(declared)

    def _hand_down(self, declared: Declared) -> None:
        self._handed.update(declared)
        for child in reversed(self.children()):
            if child not in self._pieces:
                self._say(child, HANDED, declared)

    @property
    def _waits(self) -> bool:
        """The reader, for what is handed round."""
        return self._needs is not None and not self._asked and not self._has_begun

    @property
    def _has_begun(self) -> bool:
        """Reading, which may have come to its end."""
        return self._reads or self.place in self._pieces

    @property
    def _has_all(self) -> bool:
        """That the reader waits for; without a speaker, nothing comes."""
        return self._lost is not None or (self._needs or frozenset()) <= self._handed.keys()

    def _let_read(self) -> None:
        """With what has come; what is lacking is parsed here."""
        self._reads = True
        self._reads_until = min(time.monotonic() + self._timeout, self._until(0))
        handed = {
            build_id: self._handed[build_id] for build_id in self._needs or () if self._handed.get(build_id) is not None
        }
        self._reader.send(handed, self._reads_until)

    # ---- what is waited for ----

    def _wait_for_pieces(self) -> None:
        """From the reader, and from those behind; who has not come in time is given up."""
        wanted = {self.place, *self.children()}
        while wanted - set(self._pieces):
            reads = self.place not in self._pieces
            heard = [self._speaker] if self._lost is None else []
            if not reads and not heard:
                return
            if self._waits and self._has_all:
                self._let_read()
            worker = first_of([*heard, *([self._reader] if reads else [])], self._next_moment(reads))
            if worker is self._speaker:
                self._hear()
            elif worker is self._reader:
                self._take(self._reader.receive(self._reads_until))
            elif self._waits:
                self._let_read()
            elif reads:
                self._take(LostWorker(f"has not ended in {self._timeout:g} s"))
            else:
                return

    def _next_moment(self, reads: bool) -> float:
        """When a collector is given up."""
        if not reads:
            return self._until(self.level(self.place))
        return self._began + self._timeout * HAND if self._waits else self._reads_until

    def _take(self, message: Union[BuildIds, Declared, CollectedPart[Kind], LostWorker]) -> None:
        """Take a message of the reader: which files it needs, files that it has parsed, at last its findings."""
        if isinstance(message, LostWorker):
            sentence = f"{self._whose(self.place)} does not answer: what reads there {message.reason}"
            self._pieces[self.place] = CollectedPart(self._reading.kind(problems=(sentence,)))
            if self._asked:
                self._hand_round(dict.fromkeys(self._asked))
        elif isinstance(message, CollectedPart):
            self._pieces[self.place] = message
        elif isinstance(message, frozenset):
            self._needs = message
            self._need(message, self.place)
        else:
            self._asked -= message.keys()
            self._hand_round(message)

    def _merged(self) -> CollectedPart[Kind]:
        pieces = [self._pieces[place] for place in sorted(self._pieces)]
        silent = [(child, self.last_behind(child)) for child in self.children() if child not in self._pieces]
        return CollectedPart(
            merged(self._reading.kind, [piece.findings for piece in pieces], self.size),
            max(piece.count for piece in pieces),
            next((piece.name for piece in pieces if piece.name), self._reading.name),
            (*silent, *(silence for piece in pieces for silence in piece.silent)),
            frozenset().union(*(piece.jobs for piece in pieces)),
        )


def merged(kind: type[Kind], several: Sequence[Kind], collectors: int) -> Kind:
    """A node without a process of the job is worth a word only if no node has one."""
    union = kind.merge(several)
    if not union.is_read or collectors == 1:
        return union
    if len([finding for finding in several if finding.is_read]) > 1:
        union = union.with_how(EACH_AT_ITS_TIME)
    return replace(union, problems=tuple(problem for problem in union.problems if NO_JOB.search(problem) is None))
