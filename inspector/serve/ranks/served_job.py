"""The job that is served: its processes, held still while a debugger looks, and its ranks at that moment.

Takes what the user named; gives the ranks as processes while something holds the job. A live job stands still by
ptrace(2) from the first hold to the last release, and the kernel lets it go on if this process ends in any way. Files
are decoded once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.elf.target_processor import processor_of_target
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError
from pieglobalsfind.jobs.members import JobMember, Members
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.remote import RemoteLayout
from pieglobalsfind.machine.remote_lookup import layout_of
from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.session.job_view import JobView, ViewedProcess
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.target import KernelThread, Target
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.ptrace import Standstill, by_dwarf_number, raw_registers

from ...job.target_option import explained, open_named
from .loaded_files import LoadedFiles
from .rank_process import RankProcess

PATIENCE = 1.0  # seconds; the registers of a rank that handles a signal on another stack remain unknown
BREATH = 0.001  # seconds; a switch takes less than a microsecond once its thread has a processor


class HeldTarget(FrozenTarget):
    """A process that stands still: what a debugger asks again and again is read once."""

    @cached_property
    def _threads(self) -> Sequence[KernelThread]:
        tids = self._standstill.threads(self.pid)
        return tuple(KernelThread(tid, by_dwarf_number(raw_registers(tid))) for tid in tids)

    @cached_property
    def _standing_maps(self) -> ProcMaps:
        return self.standing_maps()

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads at the pause."""
        return self._threads

    def maps(self) -> ProcMaps:
        """Return the memory map at the pause, read no further than asked for."""
        return self._standing_maps


class Moment:
    """The ranks while nothing runs."""

    def __init__(self, job: JobView) -> None:
        self.job = job
        self._ranks: dict[int, RankProcess] = {}
        self._files: dict[int, LoadedFiles] = {}

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """All ranks that are known, ascending."""
        return tuple(
            sorted({number for each in self.job.processes for number in columns_of(each.moment.table.ranks).numbers})
        )

    def rank(self, number: int) -> RankProcess:
        """Raises `UsageError` if there is no such rank."""
        if number not in self._ranks:
            view = self.job.of(number)
            self._ranks[number] = RankProcess(view, view.shown(number), self._files_of(view))
        return self._ranks[number]

    def is_any_switching(self, wanted: Optional[Collection[int]]) -> bool:
        """Whether the runtime is amid a switch of one of the ranks (None: of all); there need not be such ranks."""
        numbers = self.numbers if wanted is None else set(wanted).intersection(self.numbers)
        return any(self.rank(number).is_switching for number in numbers)

    def has_process(self, index: int) -> bool:
        """Whether the process of the job with that index, or an unknown one (-1), is among these."""
        return index < 0 or any(viewed.moment.table.process_index == index for viewed in self.job.processes)

    @property
    def file_names(self) -> frozenset[str]:
        """Where all programs and libraries of the job can be opened."""
        views = [process.moment for process in self.job.processes]
        files = [(view, self._files_of(view)) for view in views]
        names = {other.name for _, each in files for other in each.others}
        names |= {each.of_object(elf_object) for view, each in files for elf_object in view.table.objects}
        names |= {name for _, each in files for name in each.made_names}
        return frozenset(names - {""})

    def _files_of(self, view: ProcessView) -> LoadedFiles:
        if id(view) not in self._files:
            self._files[id(view)] = LoadedFiles(view)
        return self._files[id(view)]


class ServedJob:
    """The job. `name` is for sentences. Raises `RanklensError` if it can't be read or has no ranks."""

    def __init__(self, targets: Sequence[Target], name: str) -> None:
        self.name = name
        self._targets = targets
        self._holders: list[object] = []
        self._standstill: Optional[Standstill] = None
        self._moment: Optional[Moment] = None
        self.is_live = any(isinstance(target, LiveTarget) for target in targets)
        self.pids = tuple(target.pid for target in targets if isinstance(target, LiveTarget))
        if not self.is_live:
            self._moment = moment_of(targets)

    @cached_property
    def processor(self) -> Processor:
        """The job's; raises `TargetError` if that is not known."""
        return processor_of_target(self._targets[0])

    @property
    def registers(self) -> RemoteLayout:
        """Return how debuggers number the registers; raises `TargetError` if the processor is not known."""
        return layout_of(self.processor)

    # ---- holding still ----

    @property
    def is_held(self) -> bool:
        """Return whether the job stands still."""
        return bool(self._holders) or not self.is_live

    def hold(self, holder: object, wanted: Optional[Collection[int]] = ()) -> None:
        """Keep the job still until `let_go` of the same holder; raises `RanklensError` if it can't be stopped.

        Where it runs until then it stops while no rank of `wanted` (None: of all) is being switched.
        """
        if not self.is_held:
            deadline = time.monotonic() + PATIENCE
            self._stop()
            while self.moment.is_any_switching(wanted) and time.monotonic() < deadline:
                self._release()
                time.sleep(BREATH)
                self._stop()
        if not any(other is holder for other in self._holders):
            self._holders.append(holder)

    def let_go(self, holder: object) -> None:
        """Let the job go on, after the last holder has called it."""
        self._holders = [other for other in self._holders if other is not holder]
        if not self._holders and self.is_live:
            self._release()

    def forget(self, rank: int) -> None:
        """A debugger has detached from a rank."""

    def close(self) -> None:
        """Let the job go on, whatever holds it."""
        self._holders.clear()
        if self.is_live:
            self._release()

    @property
    def moment(self) -> Moment:
        """Raises `RanklensError` while the job runs."""
        if self._moment is None:
            raise RanklensError(f"{self.name} runs", "interrupt it")
        return self._moment

    def rank(self, number: int) -> RankProcess:
        """A rank of the moment; raises `RanklensError`."""
        return self.moment.rank(number)

    def _stop(self) -> None:
        pids = [pid for pid in self.pids if is_alive(pid)]
        if not pids:
            raise TargetError(f"{self.name} has ended")
        try:
            self._moment = self._stopped(pids)
        except BaseException:
            self._release()
            raise

    def _stopped(self, pids: Sequence[int]) -> Moment:
        """Ranks that are processes of their own stand still with the others."""
        self._standstill = Standstill(pids)
        targets = [HeldTarget(pid, self._standstill) for pid in pids]
        moment = moment_of(targets)
        tables = (each.moment.table for each in moment.job.processes)
        others = set[int]().union(*(columns_of(table.ranks).address_spaces for table in tables))
        others -= {thread.tid for target in targets for thread in target.threads()}
        if not others:
            return moment
        self._standstill.release()
        self._standstill = Standstill([*pids, *sorted(others)])
        targets = [HeldTarget(pid, self._standstill) for pid in pids]
        for target in targets:
            target.others.update({pid: HeldTarget(pid, self._standstill) for pid in others})
        return moment_of(targets)

    def _release(self) -> None:
        standstill, self._standstill, self._moment = self._standstill, None, None
        if standstill is not None:
            standstill.release()

    @property
    def has_ended(self) -> bool:
        """Return whether every process has ended."""
        return self.is_live and not any(map(is_alive, self.pids))


def moment_of(targets: Sequence[Target]) -> Moment:
    """The ranks of all targets that have any; raises `RanklensError` if none has."""
    processes: list[ViewedProcess] = []
    problem: Optional[RanklensError] = None
    for target in targets:
        try:
            view = ProcessView(target, decode(target))
        except RanklensError as error:
            problem = problem or error
            continue
        pid = target.pid if isinstance(target, LiveTarget) else 0
        processes.append(ViewedProcess(view, target.description, pid))
    if not processes:
        assert problem is not None
        live = targets[0]
        raise explained(live, problem) if isinstance(problem, NotVirtualizedError) else problem
    return Moment(JobView(processes))


def source_of_members(members: Members, kind: type[ServedJob]) -> ServedJob:
    """A whole job; members that can't be opened are left out, unless that leaves none."""
    targets: list[Target] = []
    problem: Optional[RanklensError] = None
    for member in members.found:
        opened = _opened(member)
        if isinstance(opened, RanklensError):
            problem = opened
        else:
            targets.append(opened)
    if not targets:
        raise problem or TargetError(f"no process of {members.name} can be read")
    return kind(targets, members.name)


def _opened(member: JobMember) -> Union[Target, RanklensError]:
    try:
        return member.open()
    except RanklensError as error:
        return error


def source_of_one(what: str, exe: Optional[str], kind: type[ServedJob]) -> ServedJob:
    """A process, or a file of one."""
    target = open_named(what, exe)
    return kind([target], target.description)


def is_alive(pid: int) -> bool:
    """Whether the process has not ended; one that its parent has not waited for yet has."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
    return False


def ended_descriptor(pid: int) -> int:
    """A file descriptor that can be read once the process has ended (pidfd_open(2)); -1 if the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
