"""The base class of collectors' findings: what is missing in them, and how those of several hosts are merged.

Takes no target; `whole_job` has the findings of a report, `mpi_stacks` those of stacks alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pieglobalsfind.jobs.members import missing
from pieglobalsfind.model import RankTable
from pieglobalsfind.ranks.rankset import compact

from ..job.read_processes import nowhere
from ..terminal.text import of_ranks

Own = TypeVar("Own", bound="HostFindings")


@dataclass(frozen=True)
class HostFindings(ABC):
    """What is known of some of a job's processes: their indices, and a sentence for each thing that is lacking."""

    processes: frozenset[int] = frozenset()
    problems: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def merge(cls: type[Own], several: Sequence[Own]) -> Own:
        """One of all; the order does not matter, and merged ones can be merged again."""

    @property
    @abstractmethod
    def is_read(self) -> bool:
        """Whether any of the processes could be read."""

    @abstractmethod
    def with_how(self: Own, how: str) -> Own:
        """The same with another sentence about how it was read."""


def together(several: Sequence[HostFindings]) -> tuple[frozenset[int], tuple[str, ...]]:
    """The processes and the problems of several, each once."""
    processes = frozenset(index for findings in several for index in findings.processes)
    return processes, tuple(dict.fromkeys(text for findings in several for text in findings.problems))


def lacks(
    findings: HostFindings, count: int, ranks: int, reported: Iterable[int], gone: Mapping[int, Sequence[int]]
) -> Iterator[str]:
    """What a job of `count` processes and so many ranks lacks, in sentences, its problems among them.

    `reported` are the ranks of some process, `gone` those that have left theirs, by the process where they
    should be.
    """
    yield from missing(findings.processes, count)
    yield from findings.problems
    yield from elsewhere(gone, findings.processes)
    yield from nowhere(ranks, reported)


def elsewhere(gone: Mapping[int, Sequence[int]], processes: frozenset[int]) -> Iterator[str]:
    """A sentence about those that are nowhere among what was read: in a process that was not, or on their way."""
    for process, numbers in sorted(gone.items()):
        whose, is_single = of_ranks(compact(numbers)), len(numbers) == 1
        if process in processes:
            were, whose_data = ("was", "its data") if is_single else ("were", "their data")
            yield f"{whose} {were} moving while the job was read: {whose_data} was not found"
        else:
            where = f"process {process}" if process >= 0 else "a process"
            yield f"{whose} {'is' if is_single else 'are'} in {where}, which can't be read"


def mixed(tables: Sequence[RankTable]) -> Iterable[str]:
    """Yield what the processes of one job contradict one another in."""
    for what, values in (
        ("methods", {table.method for table in tables}),
        ("runtimes", {table.runtime for table in tables}),
        ("jobs", {table.job_id for table in tables}),
        ("numbers of ranks", {str(table.rank_count) for table in tables}),
    ):
        if len(values) > 1:
            yield f"its processes are of different {what}: {', '.join(sorted(values))}"
