"""`inspector load`: which rank is slow: how long each rank and processing element ran, and what ranks sent.

Takes a process, a file of one or a whole job; prints tables or JSON, once or for each period. What the runtime counts
is read without a stop; of a runtime that counts nothing, samples are taken.
"""

from __future__ import annotations

import argparse
import select
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.shell.signals import on_signal
from pieglobalsfind.targets.live import LiveTarget

from ..analysis.payload import read_payload
from ..job.flight_recorder import is_ending, seconds_of
from ..job.job import Job
from ..job.read_processes import read_each
from ..job.reading import Way, add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..load import balance
from ..load.balance import Proposal, Task, propose
from ..load.counted import ProcessCounts, loads_of, read_counts
from ..load.loads import SCHEMA, Loads, as_json, between
from ..load.sampled import sample
from ..terminal.forms import print_json
from .events import Asked

SAMPLING = 2.0  # seconds, where neither --every nor --duration says how long


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show how long each rank had its processing element, how long elements had no rank to run, how often "
        "ranks were switched to, what ranks sent to one another, and what a load balancer would move: since the ranks "
        "began, or for each period. Where the runtime does not count these, ranks are sampled for 2 s: each sample "
        "pauses the job."
    )
    parser.epilog = "exit status: 0 done (by Ctrl-C, too), 1 no ranks, 2 bad call, unreadable target, or nothing counts"
    add_target(parser)
    add_way(parser)
    parser.add_argument("--every", metavar="TIME", help="again and again, each time what has been added: 1s, 500ms")
    parser.add_argument("--duration", metavar="TIME", help="with --every, for so long; else how long to take samples")
    parser.add_argument("--json", action="store_true", help="as JSON, a line for each period (docs/load-schema.md)")
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class Reading:
    """One reading of a whole job: its load, or why nothing counts it; `sizes`: by rank, what a move sends."""

    description: str
    taken: str
    loads: Union[Loads, Absent]
    sizes: dict[int, int]


def run(options: argparse.Namespace) -> int:
    """Run `inspector load`; returns the exit status."""
    every = seconds_of(options.every, "--every") if options.every is not None else None
    duration = seconds_of(options.duration, "--duration") if options.duration is not None else None
    reading = read(options)
    if isinstance(reading.loads, Absent):
        return _sampled(options, reading, reading.loads, every, duration)
    if every is None:
        if duration is not None:
            raise UsageError("--duration is how long --every goes on, or samples are taken", "add --every TIME")
        show(options, reading, reading.loads)
        return 0 if reading.loads.ranks else 1
    return _again(options, reading, every, duration)


def read(options: argparse.Namespace) -> Reading:
    """Read the job once."""
    way = way_of(options)
    members = job_named(options.job, options.target, options.exe)
    if members is not None:
        readings = read_each(members, way, lambda job, _: _read_process(job))
        return _reading(members.name, readings)
    reading = read_target(options.target, options.exe, way, _read_process, is_whole=_is_whole)
    return _reading(reading[0].job.target.description, [reading])


Process = tuple[ProcessCounts, dict[int, int]]


def _is_whole(process: Process) -> bool:
    """Every reading: each count is one word, and grows on its own."""
    return True


def _read_process(job: Job) -> Process:
    return read_counts(job), {payload.rank: payload.total for payload in read_payload(job)}


def _reading(description: str, processes: Sequence[Process]) -> Reading:
    sizes = {rank: size for _, sizes_there in processes for rank, size in sizes_there.items()}
    counts = [each for each, _ in processes]
    return Reading(description, counts[0].job.taken, loads_of(counts), sizes)


# ---- again and again ----


def _again(options: argparse.Namespace, first: Reading, every: float, duration: Optional[float]) -> int:
    """Print each period's load until the job ends, the time is over or a signal comes."""
    asked = Asked()
    began = time.monotonic()
    before, read_at = first, began
    with on_signal(asked.hear):
        while duration is None or time.monotonic() - began < duration:
            if _wait(asked, read_at + every - time.monotonic()):
                return 0
            try:
                after, now = read(options), time.monotonic()
            except RanklensError:
                if options.target is None or not options.target.isdecimal() or is_ending(int(options.target)):
                    return 0
                raise
            if isinstance(before.loads, Absent) or isinstance(after.loads, Absent):
                return 0
            show(options, after, between(before.loads, after.loads, now - read_at))
            before, read_at = after, now
    return 0


def _wait(asked: Asked, seconds: float) -> bool:
    """Whether the user has asked for the end meanwhile."""
    readable, _, _ = select.select([asked.descriptor], [], [], max(seconds, 0.0))
    return bool(readable)


def _sampled(
    options: argparse.Namespace, reading: Reading, why: Absent, every: Optional[float], duration: Optional[float]
) -> int:
    """The same of a process whose runtime does not count."""
    if options.target is None or not options.target.isdecimal() or Way(nonblocking=True) == way_of(options):
        raise RanklensError(
            f"{reading.description}: {why.reason}", "samples need one running process, which they pause"
        )
    live = LiveTarget(int(options.target))
    asked = Asked()
    began = time.monotonic()
    with on_signal(asked.hear):
        while True:
            period = every or duration or SAMPLING
            loads = sample(live, period, lambda seconds: _wait(asked, seconds))
            show(options, reading, loads)
            is_over = every is None or (duration is not None and time.monotonic() - began >= duration)
            if is_over or asked.by or is_ending(live.pid):
                return 0 if loads.ranks else 1


# ---- output ----


def proposals_of(reading: Reading, loads: Loads) -> tuple[Proposal, ...]:
    """What balancers would do with these loads; nothing where some rank's is not known."""
    tasks = []
    for rank in loads.ranks:
        if isinstance(rank.busy, Absent):
            return ()
        tasks.append(Task(rank.rank, rank.busy, rank.place, reading.sizes.get(rank.rank, 0)))
    return propose(tasks, sorted({task.place for task in tasks} | {element.place for element in loads.elements}))


def show(options: argparse.Namespace, reading: Reading, loads: Loads) -> None:
    """Print one reading."""
    proposals = proposals_of(reading, loads)
    if options.json:
        head = {"schema": SCHEMA, "target": reading.description, "taken": reading.taken}
        print_json({**head, **as_json(loads), "balance": balance.as_json(proposals)}, indent=None)
        return
    from rich.text import Text  # late: not for --json

    from ..output.load_tables import print_loads
    from ..terminal.console import console
    from ..terminal.text import harmless

    screen = console()
    screen.print(Text(f"{harmless(reading.description)}: {len(loads.ranks)} ranks", style="bold"))
    print_loads(screen, loads, proposals)
    with suppress(OSError):
        sys.stdout.flush()
