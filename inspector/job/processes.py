"""The processes of a whole job, one after the other: where `--job` is read.

Takes the members that `pieglobalsfind.jobs.members` has found and what is to be read of each; gives what was read, and
which process tells of a rank that several know. What can't be read is said, and the rest is told without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import Members, strength
from pieglobalsfind.model import Rank
from pieglobalsfind.shell.exit_status import complain

from .job import Job, Subject, checked, job_of, subject_of

Value = TypeVar("Value")


def read_each(members: Members, read: Callable[[Job], Value]) -> list[Value]:
    """What `read` makes of every process; raises `RanklensError` if none can be read."""
    found: list[Value] = []
    for member in members.found:
        try:
            with checked(job_of(member.open())) as job:
                found.append(read(job))
        except RanklensError as error:
            complain("inspector", member.saying(error.sentence))
            continue
        for one in dict.fromkeys(job.table.warnings):
            complain("inspector", member.saying(one))
    for problem in members.problems:
        complain("inspector", problem)
    if not found:
        raise RanklensError(f"no process of {members.name} can be read")
    return found


def homes_of(jobs: Iterable[Job]) -> dict[int, Job]:
    """By rank, in order: the process that tells of it."""
    best: dict[int, tuple[tuple[int, bool], Job]] = {}
    for job in jobs:
        for rank in job.table.ranks:
            if rank.rank not in best or strength(rank) > best[rank.rank][0]:
                best[rank.rank] = strength(rank), job
    return {number: best[number][1] for number in sorted(best)}


def subject_of_all(members: Members, jobs: Sequence[Job], homes: dict[int, Job]) -> Subject:
    """The whole job, with each rank as its home tells of it."""
    subject = subject_of(jobs[0])
    ranks: dict[int, dict[int, Rank]] = {id(job): {one.rank: one for one in job.table.ranks} for job in jobs}
    table = replace(subject.table, ranks=tuple(ranks[id(job)][number] for number, job in homes.items()))
    return replace(subject, description=members.name, table=table)
