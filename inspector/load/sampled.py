"""The load of a job whose runtime counts nothing: by looking again and again at which ranks run.

Takes a live process; gives `Loads` over a time. A rank's share of the looks in which it ran stands for its share of the
time; sampling_error.py says how far that may be off. Each look pauses the process, as `inspector record` does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, RUNNING, Absent
from pieglobalsfind.session.sampler import Sampler
from pieglobalsfind.targets.live import LiveTarget

from ..job.flight_recorder import is_ending
from ..recording.pace import Pace
from .loads import SAMPLED, ElementLoad, Loads, Place, RankLoad
from .processor_time import processor_seconds
from .sampling_error import worst_error

RATE = 100  # looks a second, at most
MOST_TAKEN = 0.1  # of the job's processors, for the seconds that it takes
NOT_COUNTED = Absent("its runtime does not count messages")
SHARED = Absent("ranks share its kernel thread")
NO_SWITCHES = Absent("its runtime does not count switches")


def sample(live: LiveTarget, seconds: float, wait: Callable[[float], bool]) -> Loads:
    """Look for that long, or until `wait(seconds)` says that the user wants no more, or the job ends.

    Raises `RanklensError` if it has no ranks or can't be stopped.
    """
    sampler = Sampler(live)
    sampler.look()  # it finds the ranks, which takes longer than all that follow
    pace = Pace(live.pid, 1 / RATE, MOST_TAKEN)
    ran: Counter[int] = Counter()
    busy: Counter[Place] = Counter()
    threads: dict[Place, int] = {}
    homes: dict[int, Place] = {}
    looks, began = 0, time.monotonic()
    used: dict[int, float] = {}
    while True:
        look_began, processor = time.monotonic(), time.process_time()
        try:
            stopped = sampler.look().stopped
        except RanklensError:
            if looks and is_ending(live.pid):
                break
            raise
        assert sampler.table is not None
        looks += 1
        running: set[Place] = set()
        for rank in sampler.table.ranks:
            if rank.state in (EXITED, MIGRATED_OUT):
                continue
            place = sampler.table.process_index, rank.processing_element
            homes[rank.rank] = place
            if rank.kernel_thread:
                threads[place] = rank.kernel_thread
            if rank.state == RUNNING:
                ran[rank.rank] += 1
                running.add(place)
        busy.update(running)
        for thread in threads.values():
            if thread not in used:
                used[thread] = _used(live.pid, thread)
        left = pace.wait(look_began, stopped, time.process_time() - processor)
        if time.monotonic() - began + left >= seconds or wait(left):
            break
    passed = time.monotonic() - began
    ranks = tuple(
        RankLoad(rank, homes[rank], passed * ran[rank] / looks, SHARED, NO_SWITCHES) for rank in sorted(homes)
    )
    elements = tuple(
        ElementLoad(
            place,
            threads.get(place, 0),
            passed,
            passed * (1 - busy[place] / looks),
            0.0,
            _used(live.pid, threads[place]) - used[threads[place]] if place in threads else SHARED,
        )
        for place in sorted(set(homes.values()))
    )
    how = (
        f"sampled, because its runtime does not count: {looks} looks in {passed:.1f} s; a rank's share of the time may "
        f"be off by up to {100 * worst_error(looks):.0f} percentage points (95 of 100 times); the job stood still for "
        f"{100 * pace.stopped_share:.1f} %"
    )
    return Loads(SAMPLED, how, passed, ranks, elements, NOT_COUNTED, looks=looks)


def _used(pid: int, thread: int) -> float:
    seconds = processor_seconds(pid, thread)
    return 0.0 if isinstance(seconds, Absent) else seconds
