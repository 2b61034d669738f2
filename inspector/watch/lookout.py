"""One look at a running job, and a thread that looks again and again until the job ends.

Takes a PID and a period; hands each look to a listener, from a thread of its own. A look pauses the job for
milliseconds; where it takes long, there are fewer, so that the machine is the job's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Union

from pieglobalsfind.decoders.communicators import Communicators, communicators, of_world
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks import rankset

from ..analysis.confirmed_waits import waits_of
from ..analysis.crash.crash import crash_of
from ..analysis.crash.unfinished_handler import holders
from ..analysis.global_values import Globals
from ..analysis.judge_job import places_of, verdict_of
from ..analysis.payload import Payload, read_payload
from ..analysis.rank_memory import Holding, holdings
from ..analysis.read_globals import read_globals
from ..analysis.report import Report
from ..analysis.verdict import Verdict
from ..analysis.wait_graph import Waits
from ..job import read_stacks
from ..job.flight_recorder import is_running
from ..job.job import Job, subject_of, with_waiting_calls
from ..job.read_stacks import Stacks
from ..job.reading import Way, read_quietly
from ..load.counted import load_of
from ..load.loads import Loads
from ..pointers.findings import Audit
from ..terminal.progress import told_to

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
    verdict: Verdict
    waits: Waits
    load: Union[Loads, Absent]


def look(pid: int, way: Way, with_values: bool = True) -> Look:
    """Look once, with variables' values or without; raises `RanklensError` if the process can't be read."""
    began, at = time.monotonic(), time.time()
    return read_quietly(
        str(pid),
        None,
        way,
        lambda job: _look_at(job, pid, began, at, with_values),
        with_data=with_values,
        with_requests=True,
    )


def _look_at(opened: Job, pid: int, began: float, at: float, with_values: bool) -> Look:
    raw = with_waiting_calls(opened)
    groups = communicators(raw.target, raw.table)
    job = replace(raw, table=of_world(raw.table, groups))
    payload = read_payload(job.bulk)
    ranks = holdings(job.table.ranks, payload)
    try:
        all_stacks: Union[Stacks, Absent] = read_stacks.read(job, rankset.parse("all"), False)
    except RanklensError as error:
        all_stacks = Absent(error.sentence, error.hint)
    values = read_globals(job) if with_values else Globals((), ())
    homes = dict.fromkeys((rank.rank for rank in raw.table.ranks), raw)
    waits = waits_of(raw.table, groups, homes)
    verdict = judge(raw, pid, groups, values, payload, waits)
    load = load_of([raw])
    return Look(job, ranks, all_stacks, values, at, time.monotonic() - began, pid, verdict, waits, load)


def judge(
    job: Job, pid: int, groups: Communicators, values: Globals, payload: tuple[Payload, ...], waits: Waits
) -> Verdict:
    """The verdict of a look, which checks no pointers."""
    homes = dict.fromkeys((rank.rank for rank in job.table.ranks), job)
    places = places_of(job.table, waits, homes)
    no_pointers = Audit((), {}, (), 0)
    crash = crash_of(job)
    report = Report(
        subject_of(job),
        values,
        no_pointers,
        payload,
        waits=waits,
        communicators=groups,
        crashes=() if crash is None else (crash,),
        places=places,
        held=holders(job),
    )
    return verdict_of(report, str(pid))


class Stopped(Exception):  # noqa: N818 - it reads as what it says
    """The look is not wanted any more."""


class Lookout:
    """Looks at a process every `period` seconds. `seen` gets each look; `ended` why there will be no more."""

    def __init__(
        self, pid: int, way: Way, period: float, show: Callable[[Look], None], say: Callable[[str, bool], None]
    ) -> None:
        self._pid = pid
        self._way = way
        self._period = period
        self._show = show
        self._say = say  # a sentence, and whether it is the last
        self._stopped = threading.Event()
        self._paused = False
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; what is being read is given up at the next rank."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(GRACE)

    def pause(self, paused: bool) -> None:
        """Stop looking for a while, or go on."""
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
        has_looked = False
        while not self._stopped.is_set():
            began = time.monotonic()
            if not self._paused or not has_looked:
                try:
                    self._show(look(self._pid, self._way))
                    has_looked = True
                except RanklensError as error:
                    self._say(str(error), False)
            if not is_running(self._pid):
                self._say(f"process {self._pid} has ended", True)
                return
            cost = time.monotonic() - began
            self._stopped.wait(max(self._period - cost, cost / LARGEST_SHARE - cost))
