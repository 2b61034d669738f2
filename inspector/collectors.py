"""`inspector report --mpi`: a collector on each node under the site's own MPI launcher, one report of all.

Takes the id of a job; each collector reads the job's processes on its own node. What the first has found of the
program's debug information it hands to the others, so that not every node parses the same files; findings are merged on
the way to the first in a tree. What reads, and what speaks by MPI, are processes of their own: whichever dies or hangs
on a node, what its collector would have told is said to be lacking, and the rest is reported in bounded time.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf_types import VOID, Type, TypeTable, Variables, named_by
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs import Members, members_of
from pieglobalsfind.rankset import compact

from . import whole_job
from .job import job_of
from .report import Report
from .speaker import Begun, Ending, Message, Unavailable, speak
from .supervised import Channel, Lost, Worker, first_of
from .whole_job import Findings

NAMED, HANDED, GATHERED = 1, 2, 3  # tags
# Where a launcher says which place in its launch a process has: Hydra and its kin, PMIx, Open MPI, Slurm.
PLACES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
HAND = 0.5  # of the time is for what is handed down; then each reads for all of it
PATIENCE = 8  # whoever waits for others that wait for others gives them an 8th of the time more
ENDING = 5.0  # seconds for MPI's own end
MOST_HOSTS = 8  # that are named in a sentence
Declared = dict[bytes, Variables]  # by build-id


@dataclass(frozen=True)
class Piece:
    """What some collectors have told. `silent` are those that did not, each with the last of those behind it."""

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
        assert self.found is not None
        return whole_job.finished(self.found, self.name, self.count)


@contextmanager
def gathered(job: str, pictures: bool, timeout: float) -> Iterator[Gathered]:
    """Read what is here and merge it with what the collectors behind this one tell; `timeout` in seconds."""
    speaker = Worker(speak)
    collector = None
    try:
        begun = speaker.receive(time.monotonic() + timeout)
        if isinstance(begun, Unavailable):
            hint = "install the extra `mpi`, with your MPI's library where the loader looks"
            raise UsageError(f"--mpi needs mpi4py, {begun.reason}", hint)
        if isinstance(begun, Lost):
            yield alone(job, pictures, timeout, begun)
            return
        collector = Collector(speaker, begun, timeout)
        yield collector.gather(job, pictures)
    finally:
        speaker.close(collector.end() if collector is not None else 0.0)


def alone(job: str, pictures: bool, timeout: float, lost: Lost) -> Gathered:
    """Without the others: by the first collector, as far as its launcher's word says that it is."""
    sentence = f"collectors on other hosts can't be heard: MPI_Init {lost.reason}"
    if next((os.environ[one] for one in PLACES if one in os.environ), "") != "0":
        raise RanklensError(sentence, "the first collector reports what its own host has")
    reader = Worker(partial(read, job, pictures, {}, "the only collector that is heard"), is_quiet=True)
    piece: Union[Piece, Lost] = lost
    for _ in range(2):  # debug information, findings
        piece = reader.receive(time.monotonic() + timeout)
    reader.close()
    if isinstance(piece, Lost):
        raise RanklensError(f"no process of job {job} can be read here, and {sentence}", f"what reads {piece.reason}")
    found = replace(piece.found, problems=(*piece.found.problems, sentence))
    return Gathered(found, piece.name, piece.count)


class Collector:
    """One of a binomial tree: the parent of a place is the place without its lowest bit."""

    def __init__(self, speaker: Worker, begun: Begun, timeout: float) -> None:
        self.place, self.size = begun.place, begun.size
        self._speaker = speaker
        self._began, self._timeout = time.monotonic(), timeout
        self._hosts = {begun.place: begun.host}
        self._pieces: dict[int, Piece] = {}  # by place
        self._handed: Optional[Declared] = None
        self._ready: Optional[Declared] = None  # what is handed down
        self._is_whole = True
        self._lost: Optional[Lost] = None  # why the speaker is
        self._reads_until = self._began

    def gather(self, job: str, pictures: bool) -> Gathered:
        if self.place:
            self._wait_for_hand()
            self._say(self.parent, NAMED, self._hosts)
        self._reads_until = time.monotonic() + self._timeout
        reader = Worker(partial(read, job, pictures, self._handed or {}, self._whose(self.place)), is_quiet=True)
        self._wait_for_pieces(reader)
        reader.close()
        piece = self._merged(job)
        if self.place:
            self._say(self.parent, GATHERED, piece)
            if self._lost is not None:
                raise RanklensError(f"{self._whose(self.place)} can't be heard any more: MPI {self._lost.reason}")
            return Gathered(None, piece.name, piece.count)
        problems = tuple(self._silence(*one) for one in piece.silent)
        if self._lost is not None:
            problems += (f"the other collectors can't be heard any more: MPI {self._lost.reason}",)
        found = replace(piece.found, problems=(*piece.found.problems, *problems))
        self._is_whole = not problems
        return Gathered(found, piece.name, piece.count)

    def end(self) -> float:
        """Have the speaker end, for which it waits for everybody else's; until when it may then take for itself."""
        until = self._until(self.level(0) + 1)
        if self._is_whole and self._lost is None:
            self._speaker.send(None, until)
        while self._is_whole and self._lost is None and first_of([self._speaker], until) is not None:
            told = self._speaker.receive(until)
            if isinstance(told, Ending):
                return time.monotonic() + ENDING
            self._lost = told if isinstance(told, Lost) else None
        return 0.0

    # ---- the tree ----

    @property
    def parent(self) -> int:
        return self.place & (self.place - 1)

    def children(self) -> list[int]:
        """Nearest first."""
        return [self.place | 1 << bit for bit in range(self.level(self.place)) if self.place | 1 << bit < self.size]

    def level(self, place: int) -> int:
        """How many follow one another behind a place, at most."""
        return (place & -place).bit_length() - 1 if place else (self.size - 1).bit_length()

    def last_behind(self, place: int) -> int:
        return min(self.size, place + (place & -place)) - 1

    # ---- time ----

    def _until(self, level: int) -> float:
        """Who is farther from the leaves waits longer, or what others tell of those they wait for comes too late."""
        return self._began + self._timeout * (HAND + 1 + level / PATIENCE)

    # ---- words ----

    def _whose(self, place: int) -> str:
        return f"collector {place} of {self.size} on host {self._hosts.get(place, 'unknown')}"

    def _silence(self, place: int, last: int) -> str:
        behind = range(place + 1, last + 1)
        hosts = ", ".join(sorted({self._hosts.get(one, "unknown") for one in behind})[:MOST_HOSTS])
        more = f"; nor can those behind it be heard: {compact(behind)} (hosts: {hosts})" if behind else ""
        return f"{self._whose(place)} does not answer{more}"

    # ---- messages ----

    def _say(self, to: int, tag: int, content: object) -> None:
        if self._lost is None:
            self._speaker.send(Message(to, tag, pickle.dumps(content)), self._until(self.level(self.place)))

    def _hear(self) -> None:
        """One message, which is there."""
        message = self._speaker.receive(self._until(self.level(self.place)))
        if isinstance(message, Lost):
            self._lost = message
            return
        content = pickle.loads(message.content)
        if message.tag == NAMED:
            self._meet(message.place, content)
        elif message.tag == HANDED:
            self._handed = content
        else:
            self._pieces[message.place] = content

    def _meet(self, place: int, hosts: dict[int, str]) -> None:
        """A child, or one behind it, is there. Who is not is never sent anything: MPI's own process may die of that."""
        self._hosts.update(hosts)
        if self.place:
            self._say(self.parent, NAMED, hosts)

    def _wait_for_hand(self) -> None:
        """If nothing comes, debug information is read here."""
        until = self._began + self._timeout * HAND
        while self._handed is None and self._lost is None and first_of([self._speaker], until) is not None:
            self._hear()

    def _hand_down(self, declared: Declared) -> None:
        self._ready = declared
        for child in reversed(self.children()):
            self._say(child, HANDED, declared)

    def _wait_for_pieces(self, reader: Worker) -> None:
        """From the reader, and from those behind; who has not come in time is given up."""
        wanted = {self.place, *self.children()}
        while wanted - set(self._pieces):
            reads = self.place not in self._pieces
            heard = [self._speaker] if self._lost is None else []
            if not reads and not heard:
                return
            one = first_of([*heard, *([reader] if reads else [])], self._next_moment(reads))
            if one is self._speaker:
                self._hear()
            elif one is reader:
                self._take(reader.receive(self._reads_until))
            elif self._ready is None:
                self._hand_down({})
            elif reads:
                self._take(Lost(f"has not come to its end in {self._timeout:g} s"))
            else:
                return

    def _next_moment(self, reads: bool) -> float:
        """When somebody is given up."""
        if self._ready is None:
            return self._began + self._timeout * HAND
        return self._reads_until if reads else self._until(self.level(self.place))

    def _take(self, told: Union[Declared, Piece, Lost]) -> None:
        """What the reader tells: the debug information that is used here, and then what it has found."""
        if isinstance(told, Lost):
            sentence = f"{self._whose(self.place)} does not answer: what reads there {told.reason}"
            told = Piece(Findings(None, problems=(sentence,)))
        if isinstance(told, Piece):
            self._pieces[self.place] = told
        if self._ready is None:
            self._hand_down({} if isinstance(told, Piece) else told)

    def _merged(self, job: str) -> Piece:
        pieces = [self._pieces[place] for place in sorted(self._pieces)]
        silent = [(child, self.last_behind(child)) for child in self.children() if child not in self._pieces]
        return Piece(
            merged([one.found for one in pieces], self.size),
            max(one.count for one in pieces),
            next((one.name for one in pieces if one.name), f"job {job}"),
            (*silent, *(one for piece in pieces for one in piece.silent)),
        )


def merged(several: Sequence[Findings], collectors: int) -> Findings:
    """A node without a process of the job is worth a word only if no node has one."""
    whole = whole_job.merge(several)
    if whole.report is None or collectors == 1:
        return whole
    return replace(whole, problems=tuple(one for one in whole.problems if "no process of job" not in one))


# ---- what reads ----


def read(job: str, pictures: bool, handed: Declared, whose: str, channel: Channel) -> None:
    """Sends the debug information that is used here, and then what is found."""
    own = Findings(None)
    try:
        members = members_of(job)
    except RanklensError as error:
        members = Members(f"job {job}", (), 0)
        own = Findings(None, problems=(error.sentence,))
    declared = handed or parsed(members)
    channel.send(declared)
    found = whole_job.merge([own, whole_job.read_members(members, pictures, declared)])
    problems = tuple(f"{whose}: {one}" for one in found.problems)
    channel.send(Piece(replace(found, problems=problems), members.count, members.name))


def parsed(members: Members) -> Declared:
    """Of the objects that ranks have copies of."""
    found: Declared = {}
    for member in members.found[:1]:
        try:
            job = job_of(member.open())
        except RanklensError:
            continue
        for one in job.privatized:
            declared = job.declared(one)
            if one.build_id and isinstance(declared, Variables):
                found[one.build_id] = complete(declared)
    return found


def complete(declared: Variables) -> Variables:
    """With every type that variables are made of, which are read from the file when they are looked at."""
    types: dict[int, Type] = {VOID: declared.types[VOID]}
    left = [one.type for one in declared]
    while left:
        index = left.pop()
        if index not in types:
            types[index] = declared.types[index]
            left += named_by(types[index])
    return Variables(declared.variables, TypeTable(types), declared.starts)
