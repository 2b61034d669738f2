"""What one collector reads of its own host, in a process that may hang or die, and how it reports to the others.

Takes a job's name and what is wanted of it; gives findings that can be merged. Debug information that
another collector has parsed is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Optional, TypeVar, Union

from pieglobalsfind.dwarf.types import VOID, Type, TypeTable, Variables, named_by
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.job_on_host import SeveralJobsError, members_meant
from pieglobalsfind.jobs.members import Members
from pieglobalsfind.model import Object

from ..job.job import Job, job_of
from .host_findings import HostFindings
from .worker_process import Channel

BuildIds = frozenset[bytes]
Declared = dict[bytes, Optional[Variables]]  # by build-id; None: the collector that was asked could not say
Kind = TypeVar("Kind", bound=HostFindings)


@dataclass(frozen=True)
class CollectedPart(Generic[Kind]):
    """What some collectors have told. `silent` are those that did not, each with the last collector below it.

    `jobs` are the names of those that were found where none was named.
    """

    findings: Kind
    count: int = 0  # processes of the job
    name: str = ""
    silent: tuple[tuple[int, int], ...] = ()
    jobs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reading(Generic[Kind]):
    """What is to be read: of which job ("": the only one), how, and whether that takes variables' debug information.

    `kind` is the class of what is found.
    """

    job: str
    kind: type[Kind]
    find: Callable[[Members, Mapping[bytes, Variables]], Kind] = field(repr=False)
    with_variables: bool = False

    @property
    def name(self) -> str:
        """What messages call the job before it is found."""
        return f"job {self.job}" if self.job else "the only job"


def read(reading: Reading[Kind], whose: str, channel: Channel) -> None:
    """Send which files it needs, parse the files of each order, and send its findings after the last order."""
    own, jobs = reading.kind(), frozenset[str]()
    try:
        members = members_meant(reading.job)
        jobs = frozenset() if reading.job else frozenset((members.name.removeprefix("job "),))
    except RanklensError as error:
        members = Members(reading.name, (), 0)
        own = reading.kind(problems=(error.sentence,))
        jobs = frozenset(error.names) if isinstance(error, SeveralJobsError) else jobs
    sources = sources_of(members) if reading.with_variables else {}
    channel.send(frozenset(sources))
    order: Union[BuildIds, dict[bytes, Variables]] = channel.receive()
    while isinstance(order, frozenset):
        channel.send({build_id: parsed(*sources[build_id]) for build_id in order})
        order = channel.receive()
    lacking = {build_id: parsed(*sources[build_id]) for build_id in sources.keys() - order.keys()}
    declared = {**order, **{build_id: variables for build_id, variables in lacking.items() if variables is not None}}
    findings = reading.kind.merge([own, reading.find(members, declared)])
    problems = tuple(f"{whose}: {problem}" for problem in findings.problems)
    name = members.name if members.found else ""
    channel.send(CollectedPart(replace(findings, problems=problems), members.count, name, jobs=jobs))


def sources_of(members: Members) -> dict[bytes, tuple[Job, Object]]:
    """By build-id: the objects that ranks have copies of, in the processes that can be read."""
    by_build_id: dict[bytes, tuple[Job, Object]] = {}
    for member in members.found:
        with suppress(RanklensError):
            job = job_of(member.open())
            for elf_object in job.privatized:
                if elf_object.build_id:
                    by_build_id.setdefault(elf_object.build_id, (job, elf_object))
    return by_build_id


def parsed(job: Job, source: Object) -> Optional[Variables]:
    """Return an object's variables with their types, or None without debug information."""
    declared = job.declared(source)
    return complete(declared) if isinstance(declared, Variables) else None


def complete(declared: Variables) -> Variables:
    """With every type that variables are made of, which are read from the file when they are looked at."""
    types: dict[int, Type] = {VOID: declared.types[VOID]}
    left = [variable.type for variable in declared]
    while left:
        index = left.pop()
        if index not in types:
            types[index] = declared.types[index]
            left += named_by(types[index])
    return Variables(declared.variables, TypeTable(types), declared.starts)
