"""The stacks of a process's ranks, without any debugger.

Takes a `Job` and which ranks are meant; gives each rank's calls, or why it has none. It stops nothing: of ranks that
run at this moment it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pieglobalsfind.dwarf.libdw.bindings import library
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.runtime_frames import fold_calls, runtime_path
from pieglobalsfind.stacks.call_tree import Call, Node

from ..terminal.progress import through
from .job import Job
from .rank_option import among

PASSES = 3  # who runs now may wait in a moment


@dataclass(frozen=True)
class Stacks:
    """Calls by rank, outermost first, and why other ranks have none (or not all of them)."""

    calls: dict[int, tuple[Call, ...]]
    missing: dict[int, str]

    def grouped(self) -> GroupedStacks:
        """Ranks of equal stacks together."""
        ranks_by_calls: dict[tuple[Call, ...], list[int]] = {}
        for rank, calls in self.calls.items():
            ranks_by_calls.setdefault(calls, []).append(rank)
        return grouped(((ranks, calls) for calls, ranks in ranks_by_calls.items()), self.missing)


@dataclass(frozen=True)
class GroupedStacks:
    """Each distinct stack once with its ranks, most ranks first; and why other ranks have none (or not all of it)."""

    groups: tuple[tuple[tuple[int, ...], tuple[Call, ...]], ...]
    missing: dict[int, str]

    @property
    def count(self) -> int:
        """Return how many ranks have a stack."""
        return sum(len(ranks) for ranks, _ in self.groups)

    def tree(self) -> Node:
        """As one call tree."""
        root = Node("")
        for ranks, calls in self.groups:
            root.add_all(ranks, calls)
        return root


def grouped(groups: Iterable[tuple[Iterable[int], tuple[Call, ...]]], missing: dict[int, str]) -> GroupedStacks:
    """Of groups in any order."""
    ordered = ((tuple(sorted(ranks)), calls) for ranks, calls in groups)
    return GroupedStacks(tuple(sorted(ordered, key=lambda group: (-len(group[0]), group[0]))), missing)


def read_one(job: Job, chosen: rankset.RankSet, with_runtime: bool) -> Stacks:
    """Of one process alone; raises `UsageError` for ranks that it does not have."""
    rankset.check(chosen, job.table)
    return read(job, chosen, with_runtime)


def read(job: Job, chosen: rankset.RankSet, with_runtime: bool) -> Stacks:
    """The stacks of those ranks of a set that the process has.

    Raises `RanklensError` where no stack can be walked at all.
    """
    library()
    path = "" if with_runtime else runtime_path(job.table, job.translator)
    meant = among(job, chosen)
    wanted, missing = set(meant.ranks), meant.unknown
    calls: dict[int, tuple[Call, ...]] = {}
    for _ in range(PASSES if job.target.is_live else 1):
        left = [rank for rank in job.table.ranks if rank.rank in wanted and rank.rank not in calls]
        for rank, walked in through(job.walker.stacks(left), "stacks", len(left)):
            if isinstance(walked, RanklensError):
                missing[rank.rank] = walked.sentence.removeprefix(f"rank {rank.rank} ")
                continue
            calls[rank.rank] = tuple(fold_calls(path, walked.calls))
            missing.pop(rank.rank, None)
            if walked.ends:
                missing[rank.rank] = f"its stack is not whole, {walked.ends}"
    return Stacks(calls, missing)


def label(call: Call) -> str:
    """`exchange at solver.c:165`, `MPI_Recv from librankmpi.so`."""
    if call.file:
        return f"{call.function} at {call.file.rpartition('/')[2]}:{call.line}"
    return f"{call.function} from {call.library.rpartition('/')[2]}" if call.library else call.function
