"""One look at a running job, and somebody who looks again and again until the job ends.

Takes a PID and a period; hands each look to a listener, from a thread of its own. A look pauses the job for
milliseconds; where it takes long, there are fewer, so that the machine is the job's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks import rankset

from ..job import stacks
from ..job.job import Job, with_waits
from ..job.reading import Way, read_quietly
from ..job.recorder import is_running
from ..job.stacks import Stacks
from ..terminal.progress import told_to
from .globals import Globals, read_globals
from .payload import read_payload
from .rank_memory import Holding, holdings

GRACE = 2.0  # seconds; the thread ends with the process anyhow
LARGEST_SHARE = 0.25  # of the time, that looking may take


@dataclass(frozen=True)
class Look:
    """What is to be seen at one moment. `at` is the clock's time, `seconds` what the look took,
    `job_pid` the process."""

    job: Job
    ranks: tuple[Holding, ...]
    stacks: Union[Stacks, Absent]
    globals: Globals
    at: float
    seconds: float
    job_pid: int


def look(pid: int, way: Way) -> Look:
    """Raises `RanklensError` if the process can't be read or has no ranks."""
    began, at = time.monotonic(), time.time()
    return read_quietly(str(pid), None, way, lambda job: look_at(with_waits(job), pid, began, at), with_data=True)


def look_at(job: Job, pid: int, began: float, at: float) -> Look:
    payload = read_payload(job.bulk)
    ranks = holdings(job.table.ranks, payload)
    try:
        found: Union[Stacks, Absent] = stacks.read(job, rankset.parse("all"), False)
    except RanklensError as error:
        found = Absent(error.sentence, error.hint)
    return Look(job, ranks, found, read_globals(job), at, time.monotonic() - began, pid)


class Stopped(Exception):  # noqa: N818 - it reads as what it says
    """Nobody wants the look any more."""


class Lookout:
    """Looks at a process every `period` seconds. `seen` gets each look; `ended` why there will be no more."""

    def __init__(
        self, pid: int, way: Way, period: float, seen: Callable[[Look], None], said: Callable[[str, bool], None]
    ) -> None:
        self._pid = pid
        self._way = way
        self._period = period
        self._seen = seen
        self._said = said  # a sentence, and whether it is the last
        self._stopped = threading.Event()
        self._paused = False
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Look no more; what is being read is given up at the next rank."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(GRACE)

    def pause(self, paused: bool) -> None:
        self._paused = paused

    def _run(self) -> None:
        try:
            with told_to(self._check):
                self._look_again()
        except Stopped:
            return

    def _check(self, what: str, done: int, total: int) -> None:
        if self._stopped.is_set():
            raise Stopped

    def _look_again(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            if not self._paused:
                try:
                    self._seen(look(self._pid, self._way))
                except RanklensError as error:
                    self._said(str(error), False)
            if not is_running(self._pid):
                self._said(f"process {self._pid} has ended", True)
                return
            cost = time.monotonic() - began
            self._stopped.wait(max(self._period - cost, cost / LARGEST_SHARE - cost))
