"""`inspector report --mpi`: a collector on each node under the site's own MPI launcher, one report of all.

Takes the id of a job; each collector reads the job's processes on its own node. Of those that need the same debug
information one is asked to parse it, and it is handed round, so that not every node parses the same files; findings are
merged on the way to the first in a tree. What reads, and what speaks by MPI, are processes of their own: whichever dies
or hangs on a node, its part is reported as missing, and the rest is reported in bounded time.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.types import VOID, Type, TypeTable, Variables, named_by
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs.members import Members, members_of
from pieglobalsfind.model import Object
from pieglobalsfind.ranks.rankset import compact

from ..analysis.report import Report
from ..job.job import Job, job_of
from ..job.reading import Way
from . import whole_job
from .mpi_channel import Begun, ChannelMessage, Ending, Unavailable, speak
from .whole_job import Findings
from .worker_process import Channel, LostWorker, Worker, first_of

NAMED, NEEDED, ASKED, HANDED, GATHERED = 1, 2, 3, 4, 5  # tags
# Where a launcher says which place in its launch a process has: Hydra and its kin, PMIx, Open MPI, Slurm.
PLACES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
HAND = 0.5  # of the time is for what is handed round; then each parses what it lacks, and reads for all of it
PATIENCE = 8  # a collector whose children wait for others gives them an 8th of the time more
ENDING = 5.0  # seconds for MPI's own end
MOST_HOSTS = 8  # that are named in a sentence
BuildIds = frozenset[bytes]
Declared = dict[bytes, Optional[Variables]]  # by build-id; None: the collector that was asked could not say


@dataclass(frozen=True)
class CollectedPart:
    """What some collectors have reported. `silent` are those that did not, each with the last collector below it."""

    found: Findings
    count: int = 0  # processes of the job
    name: str = ""
    silent: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Gathered:
    """What came together: `found` at the first collector alone."""

    found: Optional[Findings]
    name: str
    count: int

    def report(self) -> Report:
        """Return the whole job's report."""
        assert self.found is not None
        return whole_job.finished(self.found, self.name, self.count)


@contextmanager
def gathered(job: str, pictures: bool, timeout: float) -> Iterator[Gathered]:
    """Read what is here and merge it with what the collectors below this one report; `timeout` in seconds."""
    speaker = Worker(speak)
    collector = None
    try:
        begun = speaker.receive(time.monotonic() + timeout)
        if isinstance(begun, Unavailable):
            hint = "install the extra `mpi`, with your MPI's library on the loader's search path"
            raise UsageError(f"--mpi needs mpi4py, {begun.reason}", hint)
        if isinstance(begun, LostWorker):
            yield alone(job, pictures, timeout, begun)
            return
        collector = Collector(speaker, begun, job, pictures, timeout)
        yield collector.gather()
    finally:
        speaker.close(collector.end() if collector is not None else 0.0)


def alone(job: str, pictures: bool, timeout: float, lost: LostWorker) -> Gathered:
    """Without the others: by the first collector, as far as its launcher's word says that it is."""
    sentence = f"collectors on other hosts do not answer: MPI_Init {lost.reason}"
    if next((os.environ[place] for place in PLACES if place in os.environ), "") != "0":
        raise RanklensError(sentence, "the first collector reports what its own host has")
    reader = Worker(partial(read, job, pictures, "the only collector that answers"), is_quiet=True)
    reader.receive(time.monotonic() + timeout)  # what it needs, which no collector sends it
    reader.send({}, time.monotonic() + timeout)
    piece: Union[CollectedPart, LostWorker] = reader.receive(time.monotonic() + timeout)
    reader.close()
    if isinstance(piece, LostWorker):
        raise RanklensError(f"no process of job {job} can be read here, and {sentence}", f"what reads {piece.reason}")
    findings = replace(piece.found, problems=(*piece.found.problems, sentence))
    return Gathered(findings, piece.name, piece.count)


class Collector:
    """One of a binomial tree: the parent of a place is the place without its lowest bit."""

    def __init__(self, speaker: Worker, begun: Begun, job: str, pictures: bool, timeout: float) -> None:
        self.place, self.size = begun.place, begun.size
        self._speaker, self._job = speaker, job
        self._began, self._timeout = time.monotonic(), timeout
        self._hosts = {begun.place: begun.host}
        self._pieces: dict[int, CollectedPart] = {}  # by place
        self._is_whole = True
        self._lost: Optional[LostWorker] = None  # why the speaker is
        self._reader = Worker(partial(read, job, pictures, self._whose(self.place)), is_quiet=True)
        self._reads, self._reads_until = False, self._began + timeout
        self._needs: Optional[BuildIds] = None  # what the reader needs, once it has said so
        self._asked: set[bytes] = set()  # what the reader parses now
        self._needed: set[bytes] = set()  # what this collector has heard that anybody needs
        self._handed: Declared = {}

    def gather(self) -> Gathered:
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
        problems = tuple(self._silence(*one) for one in piece.silent)
        if self._lost is not None:
            problems += (f"the other collectors no longer answers: MPI {self._lost.reason}",)
        findings = replace(piece.found, problems=(*piece.found.problems, *problems))
        self._is_whole = not problems
        return Gathered(findings, piece.name, piece.count)

    def end(self) -> float:
        """Have the speaker end, for which it waits for everybody else's; until when it may then take for itself."""
        until = self._until(self.level(0) + 1)
        if self._is_whole and self._lost is None:
            self._speaker.send(None, until)
        while self._is_whole and self._lost is None and first_of([self._speaker], until) is not None:
            told = self._speaker.receive(until)
            if isinstance(told, Ending):
                return time.monotonic() + ENDING
            self._lost = told if isinstance(told, LostWorker) else None
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
        """Who is farther from the leaves waits longer, or what others report of those they wait for comes too late."""
        return self._began + self._timeout * (HAND + 1 + level / PATIENCE)

    # ---- words ----

    def _whose(self, place: int) -> str:
        return f"collector {place} of {self.size} on host {self._hosts.get(place, 'unknown')}"

    def _silence(self, place: int, last: int) -> str:
        behind = range(place + 1, last + 1)
        hosts = ", ".join(sorted({self._hosts.get(one, "unknown") for one in behind})[:MOST_HOSTS])
        more = f"; neither do those below it: {compact(behind)} (hosts: {hosts})" if behind else ""
        return f"{self._whose(place)} does not answer{more}"

    # ---- messages ----

    def _say(self, to: int, tag: int, content: object) -> None:
        if self._lost is None:
            self._speaker.send(ChannelMessage(to, tag, pickle.dumps(content)), self._until(self.level(self.place)))

    def _hear(self) -> None:
        """One message, which is there."""
        message = self._speaker.receive(self._until(self.level(self.place)))
        if isinstance(message, LostWorker):
            self._lost = message
            return
        content = pickle.loads(message.content)
        if message.tag == NAMED:
            self._meet(content)
        elif message.tag == NEEDED:
            self._need(*content)
        elif message.tag == ASKED:
            self._parse(content)
        elif message.tag == HANDED:
            self._hand_down(content)
        else:
            self._pieces[message.place] = content

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
        handed = {one: self._handed[one] for one in self._needs or () if self._handed.get(one) is not None}
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

    def _take(self, told: Union[BuildIds, Declared, CollectedPart, LostWorker]) -> None:
        """What the reader tells: what it needs, what it was asked to parse, and then what it has found."""
        if isinstance(told, LostWorker):
            sentence = f"{self._whose(self.place)} does not answer: what reads there {told.reason}"
            self._pieces[self.place] = CollectedPart(Findings(None, problems=(sentence,)))
            if self._asked:
                self._hand_round(dict.fromkeys(self._asked))
        elif isinstance(told, CollectedPart):
            self._pieces[self.place] = told
        elif isinstance(told, frozenset):
            self._needs = told
            self._need(told, self.place)
        else:
            self._asked -= told.keys()
            self._hand_round(told)

    def _merged(self) -> CollectedPart:
        pieces = [self._pieces[place] for place in sorted(self._pieces)]
        silent = [(child, self.last_behind(child)) for child in self.children() if child not in self._pieces]
        return CollectedPart(
            merged([piece.found for piece in pieces], self.size),
            max(piece.count for piece in pieces),
            next((piece.name for piece in pieces if piece.name), f"job {self._job}"),
            (*silent, *(one for piece in pieces for one in piece.silent)),
        )


def merged(several: Sequence[Findings], collectors: int) -> Findings:
    """A node without a process of the job is worth a word only if no node has one."""
    whole = whole_job.merge(several)
    if whole.report is None or collectors == 1:
        return whole
    return replace(whole, problems=tuple(problem for problem in whole.problems if "no process of job" not in problem))


# ---- what reads ----


def read(job: str, pictures: bool, whose: str, channel: Channel) -> None:
    """Sends what it needs, parses what it is asked to, and once it is handed what others have parsed, what it finds."""
    own = Findings(None)
    try:
        members = members_of(job)
    except RanklensError as error:
        members = Members(f"job {job}", (), 0)
        own = Findings(None, problems=(error.sentence,))
    sources = sources_of(members)
    channel.send(frozenset(sources))
    order: Union[BuildIds, dict[bytes, Variables]] = channel.receive()
    while isinstance(order, frozenset):
        channel.send({one: parsed(*sources[one]) for one in order})
        order = channel.receive()
    lacking = {one: parsed(*sources[one]) for one in sources.keys() - order.keys()}
    declared = {**order, **{one: variables for one, variables in lacking.items() if variables is not None}}
    findings = whole_job.merge([own, whole_job.read_members(members, Way(), pictures, declared)])
    problems = tuple(f"{whose}: {problem}" for problem in findings.problems)
    channel.send(CollectedPart(replace(findings, problems=problems), members.count, members.name))


def sources_of(members: Members) -> dict[bytes, tuple[Job, Object]]:
    """By build-id: the objects that ranks have copies of, in the processes that can be read."""
    found: dict[bytes, tuple[Job, Object]] = {}
    for member in members.found:
        with suppress(RanklensError):
            job = job_of(member.open())
            for elf_object in job.privatized:
                if elf_object.build_id:
                    found.setdefault(elf_object.build_id, (job, elf_object))
    return found


def parsed(job: Job, source: Object) -> Optional[Variables]:
    """Return an object's variables with their types, or None without debug information."""
    declared = job.declared(source)
    return complete(declared) if isinstance(declared, Variables) else None


def complete(declared: Variables) -> Variables:
    """With every type that variables are made of, which are read from the file when they are looked at."""
    types: dict[int, Type] = {VOID: declared.types[VOID]}
    left = [variable.type for variable in declared]
    while left:
        index = left.pop()
        if index not in types:
            types[index] = declared.types[index]
            left += named_by(types[index])
    return Variables(declared.variables, TypeTable(types), declared.starts)
