"""Check that a process whose runtime publishes no calls is idle: no rank runs, and no message waits in its queues.

Takes a job whose ranks' calls were read from their stacks; gives the reason why ranks that wait may still be let go on,
"" if there is none. Such a runtime hands out messages between the turns of ranks: while one rank runs, no reader sees
the others' messages. So no rank may run, and the runtime must have had time to hand out what there was.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import RUNNING, RankTable
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.target import word_at
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget

from ..job.job import Job, running_process, with_waiting_calls
from ..terminal.text import of_ranks

PAUSE = 0.01  # seconds between two looks
LOOKS = 200  # in rows of so many, as fast as can be: who runs at all is seen
MOST_ROWS = 500
ENOUGH = 5_000_000  # nanoseconds of a processor in which a scheduler has handed out what there was
IN_FILE = "a file does not show which messages wait in the runtime's queues"
HELD_STILL = "a process that is held still does not show which messages wait in the runtime's queues"
NO_ELEMENTS = "which rank its runtime runs is not known"
NO_TIME = "its runtime got no processor during the look"
RESTLESS = "ranks were switched during the look"


def why_not_still(job: Job, ranks: Collection[int]) -> str:
    """Why those ranks may be let go on though they wait, "" if they can't be."""
    try:
        return _why(job, ranks)
    except (RanklensError, OSError):
        return RESTLESS


def _why(job: Job, ranks: Collection[int]) -> str:
    running = [rank.rank for rank in job.table.ranks if rank.state == RUNNING]
    if running:
        verb = "runs" if len(running) == 1 else "run"
        return f"{of_ranks(compact(running))} {verb}, and messages are handed out when no rank does"
    target = running_process(job.target)
    if target is None:
        return HELD_STILL if isinstance(job.target, FrozenTarget) else IN_FILE
    reason = _watched(job, target)
    if reason:
        return reason
    again = with_waiting_calls(replace(job, target=target, table=decode(target))).table
    return "" if _moments(again, ranks) == _moments(job.table, ranks) else RESTLESS


def _watched(job: Job, target: LiveTarget) -> str:
    """Whether a rank ran while all of the runtime's threads had time, "" if none did."""
    threads = {rank.thread for rank in job.table.ranks} - {0}
    if not job.table.currents or not threads:
        return NO_ELEMENTS
    before = dict(_processor_times(target.pid))
    for _ in range(MOST_ROWS):
        for _ in range(LOOKS):
            for address in job.table.currents:
                if word_at(target, address) in threads:
                    return RESTLESS
        if _had_time(before, dict(_processor_times(target.pid))):
            return ""
        time.sleep(PAUSE)
    return NO_TIME


def _moments(table: RankTable, ranks: Collection[int]) -> list[object]:
    return [(rank.state, rank.context, rank.waiting) for rank in table.ranks if rank.rank in ranks]


def _processor_times(pid: int) -> Iterator[tuple[str, tuple[bool, int]]]:
    """By kernel thread: whether it sleeps, and for how many nanoseconds it has had a processor."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError, ValueError, IndexError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            yield task.name, (state in "SI", int((task / "schedstat").read_text().split()[0]))


def _had_time(before: dict[str, tuple[bool, int]], after: dict[str, tuple[bool, int]]) -> bool:
    """Whether every thread that does not sleep has had a processor long enough."""
    return bool(after) and all(
        sleeps or spent - before.get(name, (False, spent))[1] >= ENOUGH for name, (sleeps, spent) in after.items()
    )
