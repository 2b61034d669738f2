"""Stacks of all processes of a job, for very many ranks: `inspector stacks --mpi`.

Takes the members that `pieglobalsfind.jobs.members` has found; reads each one's stacks and merges them. Of a rank only
its number, its process and how often it had moved are kept, as packed numbers: if several processes know it,
the one where it is describes it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Optional

from pieglobalsfind.decoders.lazy_ranks import Columns, RanksOnDemand
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import JobMember, Members, strength
from pieglobalsfind.model import BLOCKED, MIGRATED_OUT, Absent, Rank, RankTable
from pieglobalsfind.ranks.rankset import RankSet

from ..analysis import stack_groups
from ..analysis.stack_groups import GroupMessage
from ..job.job import Job, Subject, subject_of
from ..job.read_processes import read_together
from ..job.read_stacks import GroupedStacks, grouped, read
from ..job.reading import Way
from .host_findings import HostFindings, lacks, mixed, together
from .host_reading import Reading

ON_ITS_HOST = Absent("this was left on the rank's host")


@dataclass(frozen=True)
class RankPlaces:
    """Of rank `numbers[i]`: by `strengths[i]` how sure its process is of it, and where it is.

    The lowest bit of a strength is 1 where the rank is, the others are how often it had moved.
    """

    numbers: array[int] = field(default_factory=lambda: array("q"))
    strengths: array[int] = field(default_factory=lambda: array("q"))
    processes: array[int] = field(default_factory=lambda: array("q"))

    def without(self, ranks: frozenset[int]) -> RankPlaces:
        """The places without those of some ranks."""
        kept = [number not in ranks for number in self.numbers]
        return RankPlaces(
            array("q", compress(self.numbers, kept)),
            array("q", compress(self.strengths, kept)),
            array("q", compress(self.processes, kept)),
        )

    def extend(self, other: RankPlaces) -> None:
        """Enter those of others."""
        self.numbers.extend(other.numbers)
        self.strengths.extend(other.strengths)
        self.processes.extend(other.processes)

    @property
    def gone(self) -> dict[int, list[int]]:
        """By process: the ranks that moved there, and that it has not reported."""
        ranks_of: dict[int, list[int]] = {}
        for number, sureness, process in zip(self.numbers, self.strengths, self.processes):
            if not sureness & 1:
                ranks_of.setdefault(process, []).append(number)
        return ranks_of


@dataclass(frozen=True)
class StackFindings(HostFindings):
    """The stacks of the ranks of some processes; `subject` is None if none could be read, and has no ranks.

    `missing` says why a rank has no stack, or not all of it.
    """

    subject: Optional[Subject] = None
    places: RankPlaces = field(default_factory=RankPlaces)
    calls: GroupMessage = field(default_factory=GroupMessage)
    missing: Mapping[int, str] = field(default_factory=dict)
    are_actors: bool = False

    @classmethod
    def merge(cls, several: Sequence[StackFindings]) -> StackFindings:
        """One of all; each rank's stack is that of the process where it is."""
        processes, problems = together(several)
        with_subject = [(findings, findings.subject) for findings in several if findings.subject is not None]
        if not with_subject:
            return StackFindings(processes, problems)
        tables = [subject.table for _, subject in with_subject]
        first = min((subject for _, subject in with_subject), key=lambda subject: subject.table.process_index)
        warnings = dict.fromkeys(text for table in tables for text in table.warnings)
        kept = of_homes([findings for findings, _ in with_subject])
        places, missing = RankPlaces(), dict[int, str]()
        for findings in kept:
            places.extend(findings.places)
            missing.update(findings.missing)
        return StackFindings(
            processes,
            problems + tuple(mixed(tables)),
            replace(
                first,
                taken=max(subject.taken for _, subject in with_subject),
                table=replace(first.table, warnings=tuple(warnings)),
            ),
            places,
            stack_groups.merge(findings.calls for findings in kept).message(),
            missing,
            kept[0].are_actors,
        )

    @property
    def is_read(self) -> bool:
        """Whether any process could be read."""
        return self.subject is not None

    def with_how(self, how: str) -> StackFindings:
        """The same with another sentence about how it was read."""
        assert self.subject is not None
        return replace(self, subject=replace(self.subject, how=how))

    def without(self, ranks: frozenset[int]) -> StackFindings:
        """The findings without what they have of some ranks."""
        if not ranks:
            return self
        missing = {rank: why for rank, why in self.missing.items() if rank not in ranks}
        return replace(self, places=self.places.without(ranks), calls=self.calls.without(ranks), missing=missing)

    def finished(self, name: str, count: int) -> tuple[Subject, GroupedStacks]:
        """The whole job's stacks; its problems are warnings. Raises `RanklensError` if there are none."""
        if self.subject is None:
            raise RanklensError(f"no process of {name} can be read", "; ".join(self.problems))
        table = self.subject.table
        sentences = lacks(self, count, table.rank_count, self.places.numbers, self.places.gone)
        warnings = tuple(dict.fromkeys((*table.warnings, *sentences)))
        table = replace(table, ranks=self._ranks(table), warnings=warnings)
        groups = stack_groups.merge((self.calls,)).groups()
        return replace(self.subject, table=table, description=name), grouped(groups, dict(self.missing))

    def _ranks(self, table: RankTable) -> RanksOnDemand:
        order = sorted(range(len(self.places.numbers)), key=self.places.numbers.__getitem__)
        numbers = [self.places.numbers[at] for at in order]
        return RanksOnDemand(Columns(numbers, (), (), frozenset()), lambda index: self._rank(order[index], table))

    def _rank(self, at: int, table: RankTable) -> Rank:
        moves, is_there = divmod(self.places.strengths[at], 2)
        return Rank(
            rank=self.places.numbers[at],
            state=BLOCKED if is_there else MIGRATED_OUT,
            processing_element=-1,
            kernel_thread=0,
            context=ON_ITS_HOST,
            stack=ON_ITS_HOST,
            heap=ON_ITS_HOST,
            heap_used=ON_ITS_HOST,
            range=ON_ITS_HOST,
            waiting=None,
            switches=ON_ITS_HOST,
            placements=(),
            evidence=table.evidence,
            process=self.places.processes[at],
            moves=moves,
            is_actor=self.are_actors,
        )


def reading(job: str, chosen: RankSet, with_runtime: bool) -> Reading[StackFindings]:
    """What a collector of stacks reads: of those ranks that are chosen."""
    return Reading(job, StackFindings, lambda members, _: read_stacks(members, Way(), chosen, with_runtime))


def read_stacks(members: Members, way: Way, chosen: RankSet, with_runtime: bool) -> StackFindings:
    """All members' stacks, merged."""

    def of_process(job: Job, member: JobMember) -> StackFindings:
        stacks = read(job, chosen, with_runtime)
        subject, ranks = subject_of(job), job.table.ranks
        return StackFindings(
            frozenset((member.index,)),
            (),
            replace(subject, table=replace(subject.table, ranks=(), objects=())),
            places_of(ranks),
            stack_groups.grouped(stacks.calls).message(),
            stacks.missing,
            bool(ranks) and ranks[0].is_actor,
        )

    results = [
        StackFindings(frozenset((member.index,)), (member.saying(result.sentence),))
        if isinstance(result, RanklensError)
        else result
        for member, result in read_together(members, way, of_process)
    ]
    return StackFindings.merge([*results, StackFindings(problems=members.doubtful)])


def places_of(ranks: Sequence[Rank]) -> RankPlaces:
    """Where a process's ranks are, also those that have left it."""
    return RankPlaces(
        array("q", (rank.rank for rank in ranks)),
        array("q", (moves << 1 | is_there for moves, is_there in map(strength, ranks))),
        array("q", (rank.process for rank in ranks)),
    )


def of_homes(several: Sequence[StackFindings]) -> list[StackFindings]:
    """The same, each without the ranks that another one of them knows better."""
    strengths: list[dict[int, int]] = []  # by rank, of each
    home: dict[int, int] = {}  # whose a rank is
    strange: dict[int, set[int]] = {}  # the ranks of each that another one knows better
    for place, findings in enumerate(several):
        own = dict(zip(findings.places.numbers, findings.places.strengths))
        strengths.append(own)
        contested = {} if home.keys().isdisjoint(own) else {rank: home[rank] for rank in own.keys() & home.keys()}
        home.update(dict.fromkeys(own, place))
        for rank, other in contested.items():
            is_stronger = own[rank] > strengths[other][rank]
            strange.setdefault(other if is_stronger else place, set()).add(rank)
            home[rank] = place if is_stronger else other
    return [findings.without(frozenset(strange.get(place, ()))) for place, findings in enumerate(several)]
