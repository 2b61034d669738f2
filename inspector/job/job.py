"""Opens what the user named (a process or a core file) and holds what every part of a report starts from.

Takes a PID or a path; gives a `Job`: the target, its rank table, and the translation of addresses. It never stops or
writes to the target, and keeps no values that may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.communicators import communicators, of_world
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import NotVirtualizedError, ObjectFileError, RanklensError
from pieglobalsfind.model import MIGRATED_OUT, Absent, Object, Rank, RankTable
from pieglobalsfind.mpi.call_from_stack import with_calls
from pieglobalsfind.ranks.symbolize import Symbolizer
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.session.one_moment import decoded
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.stacks.unwind import Walker
from pieglobalsfind.target import KernelThread, Target
from pieglobalsfind.targets import check_is_same
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget

from ..terminal import progress
from .target_option import explained, open_named

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.types import Variables

    from .pristine import Pristine


@dataclass(frozen=True)
class Job:
    """One target with its ranks. `taken` is when the rank table was read (UTC, ISO 8601).

    `handed` is debug information by build-id that has been read before.
    """

    target: Target
    table: RankTable
    translator: Translator
    symbolizer: Symbolizer
    taken: str
    handed: Mapping[bytes, Variables] = field(default_factory=dict)

    @property
    def how(self) -> str:
        """How figures of this target come about, in a sentence."""
        if isinstance(self.target, PausedTarget):
            if self.target.rest_is_live:
                return f"{self.target.pause.sentence} but those of heaps, which were read while it ran"
            return self.target.pause.sentence
        if self.target.is_live:
            return "read from the running process without stopping it; figures may be of different moments"
        if isinstance(self.target, FrozenTarget):
            return "read from the process while it stood still: all figures are of one moment"
        from pieglobalsfind.targets.snapshot import SnapshotTarget  # late: not for processes

        if isinstance(self.target, SnapshotTarget):
            return "read from a snapshot: figures are of when it was taken, of one moment if the job stood still"
        return "read from a core file: all figures are of one moment"

    def check(self) -> None:
        """Raises `TargetError` if what was read may be of two programs."""
        check_is_same(self.target)

    @cached_property
    def bulk(self) -> Job:
        """The job with what is too much to be copied during a pause, such as heaps, read while the process runs."""
        if isinstance(self.target, PausedTarget):
            return replace(self, target=self.target.with_live_rest())
        return self

    @property
    def privatized(self) -> tuple[Object, ...]:
        """The objects that ranks have copies of."""
        return tuple(elf_object for elf_object in self.table.objects if elf_object.privatized)

    @property
    def present(self) -> tuple[Rank, ...]:
        """The ranks whose image is in this process."""
        return tuple(rank for rank in self.table.ranks if rank.state != MIGRATED_OUT)

    @cached_property
    def contexts(self) -> Contexts:
        """The ranks' saved registers."""
        return Contexts(self.target, self.table)

    @cached_property
    def walker(self) -> Walker:
        """Return what walks the ranks' stacks, made once."""
        return Walker(self.target, self.table, self.translator, self.contexts, self.symbolizer)

    @cached_property
    def threads(self) -> Sequence[KernelThread]:
        """The kernel threads, as they were at the first call."""
        return self.target.threads()

    @cached_property
    def _declared(self) -> dict[int, Union[Variables, Absent]]:
        return {}

    def declared(self, elf_object: Object) -> Union[Variables, Absent]:
        """Variables and types of an object by its debug information, or why there are none."""
        if elf_object.index not in self._declared:
            self._declared[elf_object.index] = self._read_declared(elf_object)
        return self._declared[elf_object.index]

    def _read_declared(self, elf_object: Object) -> Union[Variables, Absent]:
        if elf_object.build_id in self.handed:
            return self.handed[elf_object.build_id]
        path = self.file(elf_object)
        if isinstance(path, Absent):
            return path
        from pieglobalsfind.dwarf import variable_cache  # late: much that is asked needs no variables

        progress.begin("debug information")
        return variable_cache.declared_or_why(path, elf_object.build_id)

    def root(self, elf_object: Object, type_name: str) -> Union[Variables, Absent]:
        """The type of a struct of globals, as a variable that each rank has elsewhere."""
        path = self.file(elf_object)
        if isinstance(path, Absent):
            return path
        from pieglobalsfind.dwarf.debug_info import DebugInfo

        try:
            information = DebugInfo.open(path)
        except ObjectFileError as error:
            return Absent(error.sentence, error.hint)
        variables = information.root(type_name)
        information.close()
        return variables or Absent(f"{elf_object.path} defines no type {type_name}", "compile with -g")

    def pristine(self, elf_object: Object) -> Optional[Pristine]:
        """The object's image before anything was written, None if its file can't be read."""
        from .pristine import Pristine

        path = self.file(elf_object)
        try:
            return Pristine(path, elf_object) if isinstance(path, str) else None
        except RanklensError:
            return None

    def file(self, elf_object: Object) -> Union[str, Absent]:
        """Where the object's file can be opened, if it still is the one that the target runs."""
        return object_path(self.target, identity_of(elf_object))


@dataclass(frozen=True)
class Subject:
    """What a report is about: a process, a file of one, or all processes of a job."""

    description: str
    table: RankTable
    taken: str
    how: str

    @property
    def present(self) -> tuple[Rank, ...]:
        """The ranks whose image could be read."""
        return tuple(rank for rank in self.table.ranks if rank.state != MIGRATED_OUT)


def subject_of(job: Job) -> Subject:
    """Return what a report says of a job's source."""
    return Subject(job.target.description, job.table, job.taken, job.how)


def open_job(what: str, exe: Optional[str]) -> Job:
    """Open a PID or a file of one; raises `RanklensError` with a sentence for the user."""
    return job_of(open_named(what, exe))


def job_of(target: Target, handed: Optional[Mapping[bytes, Variables]] = None) -> Job:
    """Decode a target's ranks."""
    try:
        table = decoded(target) if isinstance(target, PausedTarget) else decode(target)
    except NotVirtualizedError as error:
        raise explained(target, error) from error
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    taken = target.pause.taken if isinstance(target, PausedTarget) else now
    return Job(target, table, Translator(table, target.maps()), Symbolizer(target, table), taken, handed or {})


def ranks_at_home(homes: Mapping[int, Job]) -> tuple[Rank, ...]:
    """Each rank as its home describes it, in the order of `homes`."""
    jobs = {id(job): job for job in homes.values()}
    ranks = {key: {rank.rank: rank for rank in job.table.ranks} for key, job in jobs.items()}
    return tuple(ranks[id(job)][number] for number, job in homes.items())


def running_process(target: Target) -> Optional[LiveTarget]:
    """The process that runs while a target of it is looked at, None for one that stands still and for files."""
    if isinstance(target, PausedTarget):
        return target.live
    return target if isinstance(target, LiveTarget) and target.is_live else None


def say_warnings(job: Job) -> None:
    """On standard error, for what has no place for them."""
    print_warnings(subject_of(job))


def print_warnings(subject: Subject) -> None:
    """On standard error, each once."""
    for warning in dict.fromkeys(subject.table.warnings):
        print_error("inspector", warning)


def with_waits(job: Job) -> Job:
    """The job with the MPI call that each rank waits in, and its peer, by number in MPI_COMM_WORLD."""
    job = with_waiting_calls(job)
    return replace(job, table=of_world(job.table, communicators(job.target, job.table)))


def with_waiting_calls(job: Job) -> Job:
    """The job with the MPI call that each rank waits in, told from stacks where the runtime does not publish it.

    Peers are as it publishes them: numbers in the call's communicator.
    """
    return replace(job, table=with_calls(job.target, job.table, job.walker))


@contextmanager
def checked(job: Job) -> Iterator[Job]:
    """What is read inside is of one program, or `TargetError` is raised in the end."""
    try:
        yield job
    except RanklensError:
        job.check()  # says why, where that is so
        raise
    job.check()
