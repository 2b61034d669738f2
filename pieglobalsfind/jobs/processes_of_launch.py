"""Which processes one launch (charmrun, mpirun, srun) has started, told apart from another launch of the same program.

Takes the processes of this host, and which place each says it has in its job; gives the job's own. A launcher
may name the launch in the environment. Else its processes are those below one launcher, or the fewest below one process
that make a whole job. It reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Callable, Optional

from pieglobalsfind.jobs.processes import PROXY, HostProcess, ancestors, descendants

# Programs that start processes of one job, and nothing else.
MPICH = ("mpiexec.hydra", PROXY, "mpiexec.mpich", "mpirun.mpich")
OPEN_MPI = ("mpiexec.openmpi", "mpirun.openmpi", "orterun", "orted", "prun", "prte", "prterun", "prted")
LAST_STEP = 0xFFFFFFF0  # slurm.h, SLURM_MAX_NORMAL_STEP_ID: above are batch scripts and what else is not of srun
SLURM = ("srun", "slurmstepd", "slurmstepd-wlm")  # the last is Debian's name
LAUNCHERS = frozenset(("charmrun", "mpirun", "mpiexec", *SLURM, *MPICH, *OPEN_MPI))


@dataclass(frozen=True)
class JobPosition:
    """The process's index in its job, which has `count` processes."""

    index: int
    count: int


@dataclass(frozen=True)
class Launch:
    """The processes of one launch that are here, (index, pid) in order, of `count`; `name` is "" if it has none."""

    name: str
    found: tuple[tuple[int, int], ...]
    count: int


PlaceOf = Callable[[int], Optional[JobPosition]]  # by pid; None for one without ranks


def launch_of(pid: int, by_pid: Mapping[int, HostProcess], place_of: PlaceOf) -> Launch:
    """The launch that a process belongs to, which has a place."""
    place = place_of(pid)
    assert place is not None
    if place.count == 1:
        return Launch("", ((0, pid),), 1)
    own = by_pid[pid]
    alike = {
        host_process.pid
        for host_process in by_pid.values()
        if own.program and (host_process.program, host_process.marks) == (own.program, own.marks)
    }
    positions = {process: place_of(process) for process in alike | {pid}}
    places = {process: at for process, at in positions.items() if at and at.count == place.count}
    name = own.launch or step_of(own)
    if name:
        firsts = first_of_each(places, by_pid, places)
        if _is_each_once(firsts, places):
            return Launch(name, in_order(firsts, places), place.count)
    return Launch(proxy_of(pid, by_pid), in_order(kin(pid, by_pid, places), places), place.count)


def launches_below(pid: int, by_pid: Mapping[int, HostProcess], place_of: PlaceOf) -> list[Launch]:
    """The launches that a process has started, or a process that it has started."""
    launches: list[Launch] = []
    seen: set[int] = set()
    for descendant in descendants(pid, by_pid):
        if descendant not in seen and place_of(descendant) is not None:
            launches.append(launch_of(descendant, by_pid, place_of))
            seen.update(number for _, number in launches[-1].found)
    return launches


def kin(pid: int, by_pid: Mapping[int, HostProcess], places: Mapping[int, JobPosition]) -> list[int]:
    """Those with places below the launcher of `pid`; without one, below the nearest that has all of a job below it."""
    launcher = launcher_of(pid, by_pid)
    if launcher is not None:
        family = first_of_each(_below(launcher, by_pid, places), by_pid, places)
        if _is_each_once(family, places):
            return family
    best = [pid]
    for ancestor in (pid, *ancestors(pid, by_pid)):
        family = first_of_each(_below(ancestor, by_pid, places), by_pid, places)
        if not _is_each_once(family, places):
            break
        best = family
        if len(best) == places[pid].count:
            break
    return best


def _below(pid: int, by_pid: Mapping[int, HostProcess], places: Mapping[int, JobPosition]) -> list[int]:
    return [process for process in (pid, *descendants(pid, by_pid)) if process in places]


def launcher_of(pid: int, by_pid: Mapping[int, HostProcess]) -> Optional[int]:
    """The nearest launcher above; of launchers that start one another, the first."""
    highest = None
    for ancestor in ancestors(pid, by_pid):
        if by_pid[ancestor].name in LAUNCHERS:
            highest = ancestor
        elif highest is not None:
            break
    return highest


def first_of_each(
    family: Iterable[int], by_pid: Mapping[int, HostProcess], places: Mapping[int, JobPosition]
) -> list[int]:
    """Without those that are mere copies: forked by a process that has the same place."""
    return [
        process
        for process in family
        if not any(places.get(above) == places[process] for above in ancestors(process, by_pid))
    ]


def _is_each_once(family: Iterable[int], places: Mapping[int, JobPosition]) -> bool:
    indices = [places[process].index for process in family]
    return len(set(indices)) == len(indices)


def in_order(family: Iterable[int], places: Mapping[int, JobPosition]) -> tuple[tuple[int, int], ...]:
    """Return (index in the job, pid) in ascending order."""
    return tuple(sorted((places[process].index, process) for process in family))


def named(name: str, by_pid: Mapping[int, HostProcess]) -> Iterator[int]:
    """The processes whose environment, or whose launcher's part on this host, names a launch."""
    for process in by_pid.values():
        if name and name in (process.launch, step_of(process), proxy_of(process.pid, by_pid)):
            yield process.pid


def step_of(process: HostProcess) -> str:
    """The step of Slurm's that a process is in, as `squeue --steps` prints it; "" outside, and in a batch script."""
    job, step = process.step
    return f"{job}.{step}" if job and step.isdecimal() and int(step) <= LAST_STEP else ""


def proxy_of(pid: int, by_pid: Mapping[int, HostProcess]) -> str:
    """Where the mpiexec of MPICH listens that has started a process, "host:port": the same on all its hosts."""
    return next((by_pid[ancestor].launch for ancestor in ancestors(pid, by_pid) if by_pid[ancestor].name == PROXY), "")


def is_launched(pid: int, by_pid: Mapping[int, HostProcess]) -> bool:
    """Whether a launcher has started a process, by its environment or its ancestors."""
    return bool(by_pid[pid].launch or step_of(by_pid[pid])) or launcher_of(pid, by_pid) is not None
