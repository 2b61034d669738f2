"""The processes of one job: on this host, or in a checkpoint.

Takes what the user has: the pid of the launcher or of any process of the job, the job's id, or a checkpoint's folder.
Gives the members in order, and a sentence for each thing that is wrong with them. It reads registries' headers and
/proc, and decides nothing about ranks.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.decoders.registry_layout import parse_header, text
from pieglobalsfind.errors import RanklensError, TargetError, UsageError
from pieglobalsfind.model import MIGRATED_OUT, Rank, RankTable
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target

MOST_PROCESSES = 1 << 20
DESCRIPTION = "job"  # a checkpoint's own file about its job


@dataclass(frozen=True)
class Member:
    """One process of a job; `index` in the job, -1 if it does not say. `core`: it is one in a file."""

    index: int
    pid: int = 0
    core: str = ""

    @property
    def name(self) -> str:
        return Path(self.core).name if self.core else f"process {self.pid}"

    def open(self) -> Target:
        """Raises `TargetError` if it can't be read (any more)."""
        return open_target(core=self.core) if self.core else open_target(pid=self.pid)


@dataclass(frozen=True)
class Members:
    """A job's processes that were found, in order, of `count`; `name` says which job it is."""

    name: str
    found: tuple[Member, ...]
    count: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What is amiss, a sentence each."""
        return missing((one.index for one in self.found), self.count)


def strength(rank: Rank) -> tuple[int, bool]:
    """Of two processes' records of one rank the stronger is right: it has moved more often, or is where the rank is."""
    return rank.moves, rank.state != MIGRATED_OUT


def members_of(job: str) -> Members:
    """Raises `UsageError` or `TargetError` if there is no such job here."""
    if Path(job).is_dir():
        return in_checkpoint(Path(job))
    if not job.isdecimal():
        return by_id(job, job)
    if not Path(f"/proc/{job}").is_dir():
        raise TargetError(f"there is no process {job}", "give a pid of the job, or its id")
    own = identity(int(job))
    if own is not None:
        return by_id(own.job_id, job)
    below = {one.job_id for one in map(identity, descendants(int(job))) if one is not None}
    if len(below) == 1:
        return by_id(below.pop(), job)
    if below:
        raise UsageError(f"process {job} has started {len(below)} jobs", "give the pid of one of their own processes")
    return by_kinship(int(job))


# ---- a checkpoint ----


def in_checkpoint(folder: Path) -> Members:
    """The newest whole checkpoint in a folder, or the one that it is."""
    if not folder.is_dir():
        raise TargetError(f"{folder} is no folder", "give the folder that rankrun --checkpoint wrote to")
    numbered = sorted(one for one in folder.iterdir() if len(one.name) == 6 and one.name.isdecimal())
    whole = [one for one in (folder, *numbered) if (one / DESCRIPTION).is_file()]
    if not whole:
        raise TargetError(f"{folder} holds no whole checkpoint", "give the folder that rankrun --checkpoint wrote to")
    said = dict(one.partition(" ")[::2] for one in (whole[-1] / DESCRIPTION).read_text(errors="replace").splitlines())
    count = said.get("processes", "")
    if "end" not in said or not count.isdecimal() or not 0 < int(count) <= MOST_PROCESSES:
        raise TargetError(f"{whole[-1] / DESCRIPTION} is damaged", "take an older checkpoint")
    cores = [(index, whole[-1] / f"process-{index}.core") for index in range(int(count))]
    found = tuple(Member(index, core=str(core)) for index, core in cores if core.is_file())
    return Members(f"checkpoint {whole[-1].name}", found, int(count))


# ---- processes with a registry ----


@dataclass(frozen=True)
class Identity:
    """What a process's registry says it is."""

    job_id: str
    index: int
    count: int
    own_pid: int


def identity(pid: int) -> Optional[Identity]:
    """None if the process has no registry, or may not be read."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            line = next((one for one in file if layout.MAPPING_NAME.encode() in one), None)
        if line is None:
            return None
        data = open_target(pid=pid).read(int(line.partition(b"-")[0], 16), layout.HEADER_SIZE)
        header, _ = parse_header(data, "<" if struct.unpack_from("<Q", data)[0] == layout.MAGIC else ">")
    except (OSError, RanklensError):
        return None
    return Identity(text(header.job_id), header.process_index, header.process_count, header.process_id)


def by_id(job_id: str, asked: str) -> Members:
    """All processes of this host whose registry names the job; of those that share one, the one that it names."""
    known = {pid: one for pid in pids() for one in (identity(pid),) if one is not None and one.job_id == job_id}
    if not known:
        raise TargetError(f"no process of job {asked} can be found here", "is it still running, and yours?")
    chosen: dict[int, int] = {}
    for pid, one in sorted(known.items()):
        if one.index not in chosen or one.own_pid == pid:
            chosen[one.index] = pid
    count = max(one.count for one in known.values())
    found = tuple(Member(index, pid) for index, pid in sorted(chosen.items()))
    return Members(f"job {job_id}", found, count)


def missing(indices: Iterable[int], count: int) -> tuple[str, ...]:
    """A sentence about processes that are not there."""
    lacking = sorted(set(range(count)) - set(indices))
    if not lacking:
        return ()
    listed = ", ".join(map(str, lacking[:8])) + (", ..." if len(lacking) > 8 else "")
    return (f"of {count} processes of the job {len(lacking)} can't be found: {listed}",)


# ---- processes without one ----


def by_kinship(pid: int) -> Members:
    """The processes of one launch that run the same program: below `pid`, or below the launcher of `pid`."""
    table = ranks_of(pid)
    if table is not None and table.process_count == 1:
        return Members(f"process {pid}", (Member(0, pid),), 1)
    family = below(pid if table is None else launcher_of(pid))
    if not family:
        raise TargetError(f"neither process {pid} nor those that it started hold ranks that can be read")
    tables = {number: one for number in family for one in (ranks_of(number),) if one is not None}
    count = max((one.process_count for one in tables.values()), default=1)
    found = sorted((one.process_index, number) for number, one in tables.items())
    return Members(f"the job of process {pid}", tuple(Member(*one) for one in found), count)


def launcher_of(pid: int) -> int:
    """The nearest process above that runs another program."""
    own, above = program(pid), pid
    while program(above) == own and parent(above) > 1:
        above = parent(above)
    return above


def below(pid: int) -> list[int]:
    """The descendants that hold ranks of one program; raises `UsageError` if there are several programs."""
    families: dict[str, list[int]] = defaultdict(list)
    for one in descendants(pid):
        if ranks_of(one) is not None:
            families[program(one)].append(one)
    if len(families) > 1:
        raise UsageError(f"process {pid} has started several programs", "give the pid of one of their own processes")
    return next(iter(families.values()), [])


def ranks_of(pid: int) -> Optional[RankTable]:
    """None if it has none, or may not be read."""
    try:
        return decode(open_target(pid=pid))
    except RanklensError:
        return None


def pids() -> Iterator[int]:
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            yield int(one.name)


def program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def parent(pid: int) -> int:
    """0 if it has none that can be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def descendants(pid: int) -> Iterator[int]:
    """Below a process, nearest first."""
    children: dict[int, list[int]] = defaultdict(list)
    for one in pids():
        children[parent(one)].append(one)
    waiting = sorted(children.get(pid, []))
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += sorted(children.get(one, []))
