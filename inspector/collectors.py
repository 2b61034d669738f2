"""`inspector report --mpi`: a collector on each node under the site's own MPI launcher, one report of all.

Takes the id of a job; each collector reads the job's processes on its own node. What the first has found of the
program's debug information it hands to the others, so that not every node parses the same files; findings are merged on
the way to the first in a tree. Nobody waits for a collector for ever: what it would have told is said to be lacking.

Uses mpi4py, because sites have an MPI and its launcher, and nothing else that starts a process on each node.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from pieglobalsfind.dwarf_types import VOID, Type, TypeTable, Variables, named_by
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs import Members, members_of

from . import whole_job
from .job import job_of
from .report import Report
from .whole_job import Findings

HANDED, GATHERED = 1, 2  # tags
PAUSE = 0.002  # seconds between two looks for a message
Declared = dict[bytes, Variables]  # by build-id


@dataclass(frozen=True)
class Gathered:
    """What came together: `found` at the first collector alone. `lost`: somebody did not answer."""

    found: Optional[Findings]
    name: str
    count: int
    lost: bool

    def report(self) -> Report:
        assert self.found is not None
        return whole_job.finished(self.found, self.name, self.count)

    def leave(self, status: int) -> int:
        """The exit status; where somebody is lost the process ends here, as MPI's own end would wait for all."""
        if self.lost:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        return status


def gather(job: str, pictures: bool, timeout: float) -> Gathered:
    """Read what is here and merge it with what the collectors behind this one tell; `timeout` in seconds."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise UsageError(
            f"--mpi needs mpi4py, {error}",
            "install the extra `mpi`, with your MPI's library where the loader looks",
        ) from error
    world = Tree(MPI.COMM_WORLD, timeout)
    try:
        members = members_of(job)
        own = Findings(None)
    except RanklensError as error:
        members = Members(f"job {job}", (), 0)
        own = Findings(None, problems=(f"collector {world.place} on {MPI.Get_processor_name()}: {error.sentence}",))
    handed = world.hand_down(members)
    count, several = members.count, [own, whole_job.read_members(members, pictures, handed)]
    for child in world.children():
        message = world.receive(child, GATHERED)
        if message is None:
            last = min(world.size, child + (child & -child)) - 1
            behind = f", nor can those behind it ({child + 1} to {last}) be heard" if last > child else ""
            several.append(Findings(None, problems=(f"collector {child} of {world.size} does not answer{behind}",)))
            continue
        count = max(count, message[0])
        several.append(message[1])
    found = merged(several, world.size)
    if world.place:
        world.send(world.place & (world.place - 1), GATHERED, (count, found))
        return Gathered(None, members.name, count, world.lost)
    return Gathered(found, members.name, count, world.lost)


def merged(several: list[Findings], collectors: int) -> Findings:
    """A node without a process of the job is worth a word only if no node has one."""
    whole = whole_job.merge(several)
    if whole.report is None or collectors == 1:
        return whole
    kept = tuple(one for one in whole.problems if "no process of job" not in one)
    return Findings(whole.report, whole.processes, kept, whole.calls, whole.sizes)


class Tree:
    """A binomial tree over all collectors: the parent of a place is the place without its lowest bit."""

    def __init__(self, world: Any, timeout: float) -> None:
        self._world = world
        self._deadline = time.monotonic() + timeout
        self._sent: list[Any] = []  # requests, kept until they are done
        self.place: int = world.Get_rank()
        self.size: int = world.Get_size()
        self.lost = False

    def children(self) -> Iterator[int]:
        """Nearest first."""
        bit = 1
        while not self.place & bit and self.place | bit < self.size and bit < self.size:
            yield self.place | bit
            bit <<= 1

    def send(self, to: int, tag: int, content: object) -> None:
        """Returns once it is on its way, or the time is over."""
        request = self._world.isend(pickle.dumps(content), dest=to, tag=tag)
        if not self._wait_for(lambda: bool(request.Test())):
            self.lost = True

    def receive(self, source: int, tag: int) -> Any:
        """None if nothing comes in time."""
        if not self._wait_for(lambda: bool(self._world.iprobe(source=source, tag=tag))):
            self.lost = True
            return None
        return pickle.loads(self._world.recv(source=source, tag=tag))

    def _wait_for(self, done: Any) -> bool:
        while not done():
            if time.monotonic() > self._deadline:
                return False
            time.sleep(PAUSE)
        return True

    def hand_down(self, members: Members) -> Declared:
        """The program's debug information, parsed only where nobody above has."""
        handed: Optional[Declared] = None
        if self.place:
            handed = self.receive(self.place & (self.place - 1), HANDED)
        if handed is None:
            handed = parsed(members)
        for child in reversed(list(self.children())):
            self.send(child, HANDED, handed)
        return handed


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
