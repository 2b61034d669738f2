"""The load of a process or of a whole job as its registries count it, or, of ranks that have kernel threads of their
own, as the kernel does.

Takes `Job`s; gives `Loads` since the ranks began, or the reason why nothing counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.ampi.balancer import read_balancer
from pieglobalsfind.decoders.registry.load_counts import ProcessLoad, by_rank, plus, read_load
from pieglobalsfind.decoders.registry.load_counts import RankLoad as CountedRank
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import strongest_records
from pieglobalsfind.model import EXITED, MIGRATED_OUT, Absent, Rank

from ..job.job import Job, running_process
from .loads import COUNTED, THREADS, ElementLoad, Loads, Place, RankLoad, Seconds, Traffic, measured
from .processor_time import processor_seconds

HOW_COUNTED = "as the runtime counts since the ranks began"
HOW_THREADS = "processor time of the ranks' own kernel threads since they began, as the kernel counts it"
NOT_RUNNING = Absent("it is not a running process")


@dataclass(frozen=True)
class ProcessCounts:
    """What one process counts; `pid` is 0 of a file."""

    job: Job
    counts: Union[ProcessLoad, Absent]
    pid: int


def read_counts(job: Job) -> ProcessCounts:
    """Read a process's counts."""
    live = running_process(job.target)
    try:
        counts = read_load(live or job.target, job.table)
        if isinstance(counts, Absent) and job.table.runtime.startswith("AMPI"):
            counts = read_balancer(live or job.target, job.table)
    except RanklensError as error:
        counts = Absent(error.sentence, error.hint)
    return ProcessCounts(job, counts, live.pid if live is not None else 0)


def loads_of(processes: Sequence[ProcessCounts]) -> Union[Loads, Absent]:
    """The whole job's load, or why it is not counted."""
    missing = next((each.counts for each in processes if isinstance(each.counts, Absent)), None)
    if missing is None:
        return _counted(processes)
    if all(has_own_threads(each.job) and each.pid for each in processes):
        return _of_threads(processes)
    return missing


def load_of(jobs: Iterable[Job]) -> Union[Loads, Absent]:
    """Read the load of the processes of one job."""
    return loads_of([read_counts(job) for job in jobs])


def has_own_threads(job: Job) -> bool:
    """Whether every rank has a kernel thread that no other rank has."""
    ranks = [rank for rank in job.table.ranks if rank.state not in (MIGRATED_OUT, EXITED)]
    threads = {rank.kernel_thread for rank in ranks}
    return len(ranks) > 0 and 0 not in threads and len(threads) == len(ranks)


def _counted(processes: Sequence[ProcessCounts]) -> Loads:
    counted = [(each, each.counts) for each in processes if not isinstance(each.counts, Absent)]
    busy: dict[int, Seconds] = {}
    traffic: dict[tuple[int, int], Traffic] = {}
    notes: list[str] = []
    nothing = _nothing_sent(counts for _, counts in counted)
    for _, counts in counted:
        for number, rank in by_rank(counts).items():
            busy[number] = plus(busy.get(number, 0.0), rank.busy)
            if nothing is None:
                _add_traffic(traffic, rank, notes)
    elements = tuple(_element(each, counts, index) for each, counts in counted for index in range(len(counts.elements)))
    ranks = tuple(_rank(each, rank, busy[rank.rank]) for rank, each in _homes(processes) if rank.rank in busy)
    seconds = max(measured(element.elapsed for element in elements), default=0.0)
    notes += _notes(elements, ranks)
    how = next((counts.how for _, counts in counted if counts.how), HOW_COUNTED)
    return Loads(COUNTED, how, seconds, ranks, elements, nothing or traffic, tuple(dict.fromkeys(notes)))


def _homes(processes: Iterable[ProcessCounts]) -> Iterable[tuple[Rank, ProcessCounts]]:
    return strongest_records((each, each.job.table.ranks) for each in processes).values()


def _place(each: ProcessCounts, rank: Rank) -> Place:
    return each.job.table.process_index, rank.processing_element


def _rank(each: ProcessCounts, rank: Rank, busy: Seconds) -> RankLoad:
    processor: Seconds = Absent("ranks share its kernel thread")
    if each.pid and has_own_threads(each.job) and rank.state not in (MIGRATED_OUT, EXITED):
        processor = processor_seconds(each.pid, rank.kernel_thread)
    return RankLoad(rank.rank, _place(each, rank), busy, processor, rank.switches)


def _element(each: ProcessCounts, counts: ProcessLoad, index: int) -> ElementLoad:
    element = counts.elements[index]
    processor = processor_seconds(each.pid, element.kernel_thread) if each.pid else NOT_RUNNING
    place = each.job.table.process_index, element.element
    return ElementLoad(place, element.kernel_thread, element.elapsed, element.idle, element.undivided, processor)


def _nothing_sent(counted: Iterable[ProcessLoad]) -> Optional[Absent]:
    """Why no rank's messages are counted, None if some rank's are."""
    sent = [rank.sent for counts in counted for rank in counts.ranks]
    absent = [each for each in sent if isinstance(each, Absent)]
    return absent[0] if absent and len(absent) == len(sent) else None


def _add_traffic(traffic: dict[tuple[int, int], Traffic], rank: CountedRank, notes: list[str]) -> None:
    if isinstance(rank.sent, Absent):
        notes.append(f"rank {rank.rank}: {rank.sent.reason}")
        return
    for sent in rank.sent:
        pair = rank.rank, sent.receiver
        each = Traffic(sent.messages, sent.bytes, sent.collective_messages, sent.collective_bytes)
        traffic[pair] = traffic.get(pair, Traffic()).plus(each)


def _notes(elements: Sequence[ElementLoad], ranks: Sequence[RankLoad]) -> Iterable[str]:
    if any(seconds > 0 for seconds in measured(element.undivided for element in elements)):
        yield (
            "ranks that poll took turns without a reading of the clock: that time is not divided among them; "
            "`rankrun --exact-load` divides it"
        )
    for rank in ranks:
        if isinstance(rank.busy, Absent):
            yield f"no time of some ranks: {rank.busy.reason}"
            return


def _of_threads(processes: Sequence[ProcessCounts]) -> Loads:
    ranks = []
    for rank, each in _homes(processes):
        if rank.state not in (MIGRATED_OUT, EXITED):
            seconds = processor_seconds(each.pid, rank.kernel_thread)
            ranks.append(RankLoad(rank.rank, _place(each, rank), seconds, seconds, rank.switches))
    none = Absent("its runtime does not count messages")
    return Loads(THREADS, HOW_THREADS, 0.0, tuple(ranks), (), none)
