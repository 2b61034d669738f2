"""Choose the job on this host that a collector reads: the only one, or a step of Slurm's by its number.

Takes nothing, or `JOB` or `JOB.STEP` as Slurm's commands print it; gives the job's members here. Under Slurm it looks
at processes of the collector's own allocation alone. It decides nothing about ranks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache

from pieglobalsfind.errors import TargetError, UsageError
from pieglobalsfind.jobs import processes_of_launch
from pieglobalsfind.jobs.members import Members, identity, members_of, of_launch, place
from pieglobalsfind.jobs.processes import HostProcess, processes

SLURM = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,10}))?")


class SeveralJobsError(UsageError):
    """No job was named, and `names` are here."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        super().__init__(f"there are {len(self.names)} jobs: {', '.join(self.names)}", "name one by --job")


def members_meant(job: str) -> Members:
    """The members of a job; "" is the only one that is here.

    Raises `SeveralJobsError` if there are more, `UsageError` or `TargetError` if there is no such job here.
    """
    step = SLURM.fullmatch(job)
    if job and not step:
        return members_of(job)
    by_pid = processes()
    if not step:
        return _only(_of_allocation(by_pid), by_pid, "no job of ranks can be found here")
    number, part = step.groups()
    among = [process for process in by_pid.values() if process.step[0] == number and part in (None, process.step[1])]
    if not among and part is None:
        return members_of(job)  # a pid
    return _only(among, by_pid, f"no process of job {job} can be found here")


def _of_allocation(by_pid: Mapping[int, HostProcess]) -> Iterable[HostProcess]:
    """Of Slurm's, where this process has one: those of the job's other steps."""
    own_job, own_part = by_pid[os.getpid()].step
    if not own_job:
        return by_pid.values()
    return (process for process in by_pid.values() if process.step[0] == own_job and process.step[1] != own_part)


def _only(among: Iterable[HostProcess], by_pid: Mapping[int, HostProcess], none: str) -> Members:
    jobs = list(_jobs(among, by_pid))
    if len(jobs) > 1:
        raise SeveralJobsError(members.name.removeprefix("job ") for members in jobs)
    if not jobs:
        raise TargetError(none, "is it still running, and yours?")
    return jobs[0]


def _jobs(among: Iterable[HostProcess], by_pid: Mapping[int, HostProcess]) -> Iterator[Members]:
    """Each job that one of some processes belongs to, once: by their registries, then by their launches."""
    own = by_pid[os.getpid()].program  # collectors are no ranks
    left = [process.pid for process in among if process.program and process.program != own]
    identities = {pid: entry for pid in left for entry in (identity(pid),) if entry is not None}
    for name in sorted({entry.job_id for entry in identities.values() if entry.job_id}):
        with suppress(TargetError):  # it has ended
            yield members_of(name)
    place_of, seen = lru_cache(maxsize=None)(place), {pid for pid, entry in identities.items() if entry.job_id}
    for pid in left:
        if pid not in seen and processes_of_launch.is_launched(pid, by_pid) and place_of(pid) is not None:
            members = of_launch(pid, processes_of_launch.launch_of(pid, by_pid, place_of))
            seen.update(member.pid for member in members.found)
            yield members
