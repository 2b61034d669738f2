"""Read all processes of a job at one moment, for `--job`.

Takes the members that `pieglobalsfind.jobs.members` has found and what is to be read of each; gives what was read, and
which process describes a rank that several know. What can't be read is named, and the rest is shown without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Optional, TypeVar, Union

from pieglobalsfind.errors import NotStoppableError, RanklensError
from pieglobalsfind.jobs.members import JobMember, Members, strongest_records
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.one_moment import ProcessPlan, at_one_moment, plan_for
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.target import Target
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.ptrace import Standstill

from ..terminal.text import of_ranks
from .job import Job, Subject, checked, job_of, ranks_at_home, subject_of
from .reading import UNPAUSED, Way, prepared, print_stop

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.types import Variables

MOST_RANKS = 1 << 24  # of which each is looked for: the number may be damaged

Value = TypeVar("Value")
Read = Union[Value, RanklensError]  # what was read of a process, or why it could not be


def read_each(
    members: Members,
    way: Way,
    read: Callable[[Job, JobMember], Value],
    with_data: bool = False,
    with_requests: bool = False,
) -> list[Value]:
    """What `read` makes of every process; raises `RanklensError` if none can be read.

    `read` may be called several times for each. `with_data`: it reads globals, `with_requests`: what ranks wait for.
    """
    results: list[Value] = []
    warnings: list[str] = []

    def with_job(job: Job, member: JobMember) -> tuple[Job, Value]:
        return job, read(job, member)

    for member, value in read_together(members, way, with_job, with_data, with_requests):
        if isinstance(value, RanklensError):
            print_error("inspector", member.saying(value.sentence))
            continue
        job, result = value
        results.append(result)
        warnings += [member.saying(warning) for warning in job.table.warnings]
    for sentence in (*dict.fromkeys(warnings), *members.problems):
        print_error("inspector", sentence)
    if not results:
        raise RanklensError(f"no process of {members.name} can be read")
    return results


def read_together(
    members: Members,
    way: Way,
    read: Callable[[Job, JobMember], Value],
    with_data: bool = False,
    with_requests: bool = False,
    handed: Optional[Mapping[bytes, Variables]] = None,
) -> list[tuple[JobMember, Read[Value]]]:
    """What `read` makes of each process: at one moment, unless the way is to stop none, or they are in files."""

    def read_one(target: Target, member: JobMember) -> Read[Value]:
        try:
            with checked(job_of(target, handed)) as job:
                return read(job, member)
        except RanklensError as error:
            return error

    opened = [(member, _opened(member)) for member in members.found]
    live = [(member, target) for member, target in opened if isinstance(target, LiveTarget)]
    together: dict[JobMember, Read[Value]] = {}
    if live and way.freeze:
        with _frozen(members.name, [target for _, target in live]) as frozen:
            together = {member: read_one(target, member) for (member, _), target in zip(live, frozen)}
    elif live and not way.nonblocking:
        together = _paused(live, read_one, with_data, with_requests)
    for member, target in opened:
        if member not in together:
            together[member] = target if isinstance(target, RanklensError) else read_one(target, member)
    return [(member, together[member]) for member, _ in opened]


def _opened(member: JobMember) -> Union[Target, RanklensError]:
    try:
        return member.open()
    except RanklensError as error:
        return error


def _paused(
    live: Sequence[tuple[JobMember, LiveTarget]],
    read_one: Callable[[Target, JobMember], Read[Value]],
    with_data: bool,
    with_requests: bool,
) -> dict[JobMember, Read[Value]]:
    """What was read of those that could be stopped; without the others."""
    together: dict[JobMember, Read[Value]] = {}
    planned: list[tuple[JobMember, ProcessPlan]] = []
    for member, target in live:
        plan = _plan_or_why(target, with_data, with_requests)
        if isinstance(plan, RanklensError):
            together[member] = plan
        else:
            planned.append((member, plan))

    def read_all(paused: Sequence[PausedTarget]) -> None:
        together.update({member: read_one(target, member) for (member, _), target in zip(planned, paused)})

    try:
        if planned:
            at_one_moment([process for _, process in planned], with_data, read_all)
    except NotStoppableError as error:
        print_error("inspector", f"{error}, {UNPAUSED}")
    return together


def _plan_or_why(target: LiveTarget, with_data: bool, with_requests: bool) -> Union[ProcessPlan, RanklensError]:
    try:
        return plan_for(target, with_data, with_requests)
    except RanklensError as error:
        return error


@contextmanager
def _frozen(name: str, processes: Sequence[LiveTarget]) -> Iterator[list[FrozenTarget]]:
    """All of them stopped inside; for how long is printed on standard error."""
    for live_target in processes:
        prepared(live_target)
    standstill = Standstill([process.pid for process in processes])
    try:
        yield [FrozenTarget(process.pid, standstill) for process in processes]
    finally:
        standstill.release()
    print_stop(f"{len(processes)} processes of {name}", standstill.began)


def homes_of(jobs: Iterable[Job]) -> dict[int, Job]:
    """By rank, in order: the process that describes it."""
    homes = strongest_records((job, job.table.ranks) for job in jobs)
    return {number: job for number, (_, job) in homes.items()}


def nowhere(count: int, present: Iterable[int]) -> Iterator[str]:
    """A sentence about those of `count` ranks that no process has: not read, or on their way between processes."""
    lacking = set(range(min(count, MOST_RANKS))).difference(present)
    if lacking:
        yield f"no process shows {of_ranks(compact(lacking))}"


def subject_of_all(members: Members, jobs: Sequence[Job], homes: dict[int, Job]) -> Subject:
    """The whole job, with each rank as its home describes it; standard error has a sentence about the others."""
    subject = subject_of(jobs[0])
    for sentence in nowhere(subject.table.rank_count, homes):
        print_error("inspector", sentence)
    return replace(subject, description=members.name, table=replace(subject.table, ranks=ranks_at_home(homes)))
