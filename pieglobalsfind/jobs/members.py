"""The processes of one job: on this host, or in a checkpoint.

Takes what the user has: the pid of the launcher or of any process of the job, the job's id, or a checkpoint's folder.
Gives the members in order, and a sentence for each thing that is wrong with them. Processes with a registry say which
job is theirs; those without one belong to their launch. If several have a record of a rank, it says which is right.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Optional, TypeVar

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import parse_header, text
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError, UsageError
from pieglobalsfind.jobs import processes_of_launch
from pieglobalsfind.jobs.processes import HostProcess, descendants, listens, pids, processes, program
from pieglobalsfind.jobs.processes_of_launch import JobPosition
from pieglobalsfind.jobs.unreadable_processes import doubtful
from pieglobalsfind.model import MIGRATED_OUT, Rank
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from pieglobalsfind.targets.procfs import is_folder, no_process
from pieglobalsfind.targets.refuse_charm_checkpoint import check_is_none

MOST_PROCESSES = 1 << 20
NUMBER = re.compile("[0-9]{1,7}")
FIRST_PROCESS = 1  # orphans of any job are below it; only in a container it may be a launcher
STARTERS = processes_of_launch.LAUNCHERS | {"rankrun"}
LARGEST_DESCRIPTION = 1 << 20  # characters
Process = TypeVar("Process")  # in whatever form it has been read
DESCRIPTION = "job"  # in the folder of a checkpoint or of snapshots: what says that it is whole


@dataclass(frozen=True)
class JobMember:
    """One process of a job; `index` in the job, -1 if it does not say. `core`: it is one in a file."""

    index: int
    pid: int = 0
    core: str = ""

    @property
    def name(self) -> str:
        """Return what messages call the process."""
        return Path(self.core).name if self.core else f"process {self.pid}"

    def saying(self, sentence: str) -> str:
        """A sentence about it, which names it once."""
        return sentence if self.name in sentence else f"{self.name}: {sentence}"

    def open(self) -> Target:
        """Raises `TargetError` if it can't be read (any more)."""
        return open_target(core=self.core) if self.core else open_target(pid=self.pid)


@dataclass(frozen=True)
class Members:
    """A job's processes that were found, in order, of `count`; `name` says which job it is.

    `doubtful` are sentences about processes of which it is unknown whether they belong to the job.
    """

    name: str
    found: tuple[JobMember, ...]
    count: int
    doubtful: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What is amiss, a sentence each."""
        return (*missing((job_member.index for job_member in self.found), self.count), *self.doubtful)


def strength(rank: Rank) -> tuple[int, bool]:
    """Of two processes' records of one rank the stronger is right: it has moved more often, or is where the rank is."""
    return rank.moves, rank.state != MIGRATED_OUT


def strongest_records(processes: Iterable[tuple[Process, Iterable[Rank]]]) -> dict[int, tuple[Rank, Process]]:
    """By rank, in order: the strongest of its records, and its home, the process that has this record."""
    strongest: dict[int, tuple[Rank, Process]] = {}
    for process, ranks in processes:
        for rank in ranks:
            if rank.rank not in strongest or strength(rank) > strength(strongest[rank.rank][0]):
                strongest[rank.rank] = rank, process
    return dict(sorted(strongest.items()))


def members_of(job: str) -> Members:
    """Raises `UsageError` or `TargetError` if there is no such job here."""
    if not job:
        raise UsageError("no job is named", "give a pid of it, or its id")
    if is_folder(job):
        return in_checkpoint(Path(job))
    if not job.isdecimal():
        return by_id(job, job)
    if not Path(f"/proc/{job}").is_dir():
        raise no_process(int(job), "give a pid of the job, or its id")
    own = identity(int(job))
    if own is not None and own.job_id:
        return by_id(own.job_id, job)
    if int(job) == FIRST_PROCESS and Path(program(FIRST_PROCESS)).name not in STARTERS:
        raise UsageError(
            "process 1 is the parent of every process here, not a job's launcher", "give a pid of the job, or its id"
        )
    below = {
        member_identity.job_id
        for member_identity in map(identity, descendants(int(job), processes()))
        if member_identity is not None
    }
    if len(below) == 1 and "" not in below:
        return by_id(below.pop(), job)
    if below - {""}:
        raise several(job, len(below))
    return by_launch(int(job))


def several(pid: object, count: int) -> UsageError:
    """Return the error for a process that has started several jobs."""
    return UsageError(f"process {pid} has started {count} jobs", "give the pid of one of their own processes")


def launcher_error(pid: int) -> Optional[UsageError]:
    """What there is to say of a process without ranks that has started a job; None if it has started none, or several.

    A job's launcher is meant, or the shell that it was started in.
    """
    try:
        members = members_of(str(pid))
    except RanklensError:
        return None
    pids = [job_member.pid for job_member in members.found]
    if not pids or pid in pids:
        return None
    if members.count == 1:
        return UsageError(f"process {pid} has no ranks itself, it has started process {pids[0]}", "give that pid")
    listed = ", ".join(map(str, pids[:8])) + (", ..." if len(pids) > 8 else "")
    return UsageError(
        f"process {pid} has no ranks itself, it has started {members.name} with processes {listed}",
        f"give the pid of one, or to `inspector report`, `stacks`, `waits` or `globals` the whole job by --job {pid}",
    )


# ---- a checkpoint ----


def in_checkpoint(folder: Path) -> Members:
    """The newest whole checkpoint in a folder, or the one that it is; or the snapshots that it holds of a job."""
    if not folder.is_dir():
        raise TargetError(f"{folder} is not a folder", "give the folder that rankrun --checkpoint wrote to")
    numbered = sorted(path for path in folder.iterdir() if len(path.name) == 6 and path.name.isdecimal())
    whole = [path for path in (folder, *numbered) if (path / DESCRIPTION).is_file()]
    if not whole:
        check_is_none(str(folder))
        raise TargetError(f"{folder} holds no whole checkpoint", "give the folder that rankrun --checkpoint wrote to")
    with (whole[-1] / DESCRIPTION).open(errors="replace") as file:
        description = dict(line.partition(" ")[::2] for line in file.read(LARGEST_DESCRIPTION).splitlines())
    count = description.get("processes", "")
    if "end" not in description or not NUMBER.fullmatch(count) or not 0 < int(count) <= MOST_PROCESSES:
        raise TargetError(f"{whole[-1] / DESCRIPTION} is damaged", "take an older checkpoint")
    is_snapshot = any(whole[-1].glob("process-*.snapshot"))
    form, suffix = ("snapshot", "snapshot") if is_snapshot else ("checkpoint", "core")
    files = [(index, whole[-1] / f"process-{index}.{suffix}") for index in range(int(count))]
    job_members = tuple(JobMember(index, core=str(file)) for index, file in files if file.is_file())
    return Members(f"{form} {whole[-1].name}", job_members, int(count))


# ---- processes with a registry ----


@dataclass(frozen=True)
class MemberIdentity:
    """What a process's registry says it is."""

    job_id: str
    index: int
    count: int
    own_pid: int


def identity(pid: int) -> Optional[MemberIdentity]:
    """None if the process has no registry, or it may not be read, or is none that this reader knows."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            line = next((line for line in file if layout.MAPPING_NAME.encode() in line), None)
        if line is None:
            return None
        data = open_target(pid=pid).read(int(line.partition(b"-")[0], 16), layout.HEADER_SIZE)
        header, _ = parse_header(data, "<" if struct.unpack_from("<Q", data)[0] == layout.MAGIC else ">")
    except (OSError, RanklensError):
        return None
    if header.abi_version != layout.ABI_VERSION or not header.process_index < header.process_count <= MOST_PROCESSES:
        return None
    return MemberIdentity(text(header.job_id), header.process_index, header.process_count, header.process_id)


def by_id(job_id: str, asked: str) -> Members:
    """All processes of this host whose registry names the job; if several share one, the process that it names."""
    identities = {
        pid: member_identity
        for pid in pids()
        for member_identity in (identity(pid),)
        if member_identity is not None and member_identity.job_id == job_id
    }
    if not identities:
        named = by_name(job_id)
        if named is not None:
            return named
        raise TargetError(f"no process of job {asked} can be found here", "check that it runs, and that you own it")
    chosen: dict[int, int] = {}
    for pid, member_identity in sorted(identities.items()):
        if member_identity.index not in chosen or member_identity.own_pid == pid:
            chosen[member_identity.index] = pid
    count = max(member_identity.count for member_identity in identities.values())
    job_members = tuple(JobMember(index, pid) for index, pid in sorted(chosen.items()))
    return with_doubtful(Members(f"job {job_id}", job_members, count))


def with_doubtful(members: Members) -> Members:
    """With what there is to say of processes that may be those that are missing."""
    if len(members.found) == members.count:
        return members
    return replace(members, doubtful=doubtful([job_member.pid for job_member in members.found]))


def missing(indices: Iterable[int], count: int) -> tuple[str, ...]:
    """A sentence about processes that are not there."""
    lacking = sorted(set(range(count)) - set(indices))
    if not lacking:
        return ()
    listed = ", ".join(map(str, lacking[:8])) + (", ..." if len(lacking) > 8 else "")
    return (f"of {count} processes of the job {len(lacking)} can't be found: {listed}",)


# ---- processes without one ----


def by_launch(pid: int) -> Members:
    """The processes of the launch that `pid` belongs to, or that it is the launcher of."""
    by_pid, place_of = processes(), lru_cache(maxsize=None)(place)
    if pid in by_pid and place_of(pid) is not None:
        return of_launch(pid, processes_of_launch.launch_of(pid, by_pid, place_of))
    launches = [*processes_of_launch.launches_below(pid, by_pid, place_of), *_elsewhere(pid, by_pid, place_of)]
    different = list(dict.fromkeys(launches))
    if not different:
        with suppress(NotVirtualizedError):
            decode(open_target(pid=pid))  # raises if another user's process may not be read, or its registry is bad
        raise TargetError(f"neither process {pid} nor those that it started hold ranks that can be read")
    if len(different) > 1:
        raise several(pid, len(different))
    return of_launch(pid, different[0])


def _elsewhere(
    pid: int, by_pid: Mapping[int, HostProcess], place_of: Callable[[int], Optional[JobPosition]]
) -> Iterator[processes_of_launch.Launch]:
    """The launches of charmruns that are not above their processes, as when ssh has started them.

    Such a process knows where its charmrun listens.
    """
    asked = (pid, *descendants(pid, by_pid))
    for name in {
        host_process.launch
        for host_process in by_pid.values()
        if any(_is_charmrun(each, host_process.launch) for each in asked)
    }:
        first = next(
            (process for process in processes_of_launch.named(name, by_pid) if place_of(process) is not None), None
        )
        if first is not None:
            yield processes_of_launch.launch_of(first, by_pid, place_of)


def _is_charmrun(pid: int, name: str) -> bool:
    """Whether a launch's name, "address port pid port", means a process of this host."""
    words = name.split()
    if len(words) != 4 or not (words[1].isdecimal() and words[2].isdecimal()):
        return False
    return int(words[2]) == pid & 0x7FFF and listens(pid, int(words[1]))


def by_name(name: str) -> Optional[Members]:
    """The processes of the launch that their environment names so; None if there is none."""
    by_pid, place_of = processes(), lru_cache(maxsize=None)(place)
    pid = next((process for process in processes_of_launch.named(name, by_pid) if place_of(process) is not None), None)
    return None if pid is None else of_launch(pid, processes_of_launch.launch_of(pid, by_pid, place_of))


def of_launch(pid: int, job: processes_of_launch.Launch) -> Members:
    """The members of a launch that a process belongs to."""
    name = f"job {job.name}" if job.name else f"the job of process {pid}" if job.count > 1 else f"process {pid}"
    return with_doubtful(Members(name, tuple(JobMember(*member) for member in job.found), job.count))


def place(pid: int) -> Optional[JobPosition]:
    """What a process's runtime says of its place; None if it holds no ranks, or may not be read."""
    try:
        table = decode(open_target(pid=pid))
    except RanklensError:
        return None
    return JobPosition(table.process_index, table.process_count)
