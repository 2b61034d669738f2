"""`inspector events`: what happens to a job's ranks, as it happens: created, leaves, arrived, exited.

Takes a job's processes, or files of them; prints a line for each event, first those that the processes still remember,
until the job or its user ends it. It stops no process and attaches to none.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Optional, Union

from pieglobalsfind.decoders.registry.event_ring import Event
from pieglobalsfind.errors import RanklensError, TargetError, UsageError
from pieglobalsfind.jobs.job_on_host import members_meant
from pieglobalsfind.jobs.members import JobMember, Members, members_of
from pieglobalsfind.shell.atomic_file import check_place
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.shell.signals import exit_status, on_signal
from pieglobalsfind.targets import open_target
from pieglobalsfind.targets.procfs import is_folder

from ..collect import mpi_option
from ..job.event_sources import Ended, EventHeading, EventSource, JobEvents, LostEvents, Notice
from ..job.flight_recorder import seconds_of
from ..output import chrome_trace
from ..schemas import envelope, schema_name
from ..terminal.renamed_option import RenamedOption
from ..terminal.text import harmless

SCHEMA = schema_name("events", 1)
HOW = "read from the processes' rings of events, without stopping them"
SENTENCES = {
    "copies begin": "copies of the program are about to be made",
    "copies made": "all copies of the program are made",
}
CHECKPOINT = {"leaves": "is written to a checkpoint", "arrived": "goes on after the checkpoint"}  # of its own process


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Print a line for each rank of a job that is created, leaves for another process, arrives and "
        "exits: first those that the job's processes still remember, then each as it happens, in the order of time, "
        "until the job ends. The job is never stopped, and a debugger can be attached to it meanwhile."
    )
    parser.epilog = "exit status: 0 done (by Ctrl-C, too), 1 nothing has happened, 2 bad call or unreadable target"
    parser.add_argument(
        "target",
        nargs="?",
        metavar="PID|JOB|CORE|DIR",
        help="a job: its launcher's pid, one of its processes', or its id; or a core file, or a checkpoint's folder",
    )
    parser.add_argument("--job", metavar="JOB", help="the same, as other commands take it")
    mpi_option.add_to(parser)
    parser.add_argument("--no-follow", action="store_true", help="only what has happened so far")
    parser.add_argument("--past", action=RenamedOption, new_name="--no-follow")
    parser.add_argument("--duration", metavar="TIME", help="for so long, not until the job ends: 10s, 2min")
    parser.add_argument("--for", action=RenamedOption, new_name="--duration")
    parser.add_argument("--every", metavar="TIME", default="50ms", help="how often to look for new ones (50ms)")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each (docs/events-schema.md)")
    parser.add_argument(
        "--chrome", metavar="FILE", help="at the end, also a file that Perfetto and chrome://tracing open"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector events`; returns the exit status."""
    duration = seconds_of(options.duration, "--duration") if options.duration is not None else None
    every = seconds_of(options.every, "--every")
    if options.chrome is not None:
        check_place(Path(options.chrome), chrome_trace.HINT)
    pace = Pace(every, 0.0 if options.no_follow else duration)
    if mpi_option.is_collector(options):
        return _run_collector(options, pace)
    if (options.job is None) == (options.target is None):
        raise UsageError("name one job", "give PID, JOB, CORE, DIR or --job JOB")
    heading, sources = opened(named(options.target or options.job))
    asked = Asked()
    with on_signal(asked.hear):
        return show(heading, rounds(JobEvents(sources), pace, asked), options, asked)


def _run_collector(options: argparse.Namespace, pace: Pace) -> int:
    from ..collect.event_stream import EventCollector  # late: only this needs it

    collector, asked = EventCollector(mpi_option.timeout_of(options)), Asked()
    try:
        heading, sources = opened(members_meant(options.job or ""))
    except TargetError as error:  # a host without a process of the job
        heading, sources = EventHeading("", 0, (), (error.sentence,)), []
    with on_signal(asked.hear):
        own = rounds(JobEvents(sources), pace, asked)
        if not collector.is_first:
            collector.tell(heading, own)
            status = 0
        else:
            streams = collector.streams()
            merged = collector.merged(streams, heading, own, pace.every)
            first = next(merged)
            try:
                status = show(streams.heading(), chain([first], merged), options, asked)
            except RanklensError:
                collector.end()  # or the others wait for it
                raise
    collector.end()
    return status


def show(heading: EventHeading, batches: Iterable[Sequence[Notice]], options: argparse.Namespace, asked: Asked) -> int:
    """Print events as they are told, and write the trace; returns the exit status."""
    if not heading.processes:
        raise TargetError(f"no process of {heading.name} reports events", "; ".join(heading.problems))
    for problem in heading.problems:
        print_error("inspector", problem)
    begin(heading, options.json)
    trace = chrome_trace.Trace(heading.name, {process.index: process.pid for process in heading.processes})
    events = 0
    try:
        for notices in batches:
            for notice in notices:
                events += isinstance(notice, Event)
                # Clocks since a host's start differ from host to host.
                trace.add(
                    replace(notice, monotonic=notice.realtime) if options.mpi and isinstance(notice, Event) else notice
                )
                print(json.dumps(as_json(notice)) if options.json else as_line(notice), flush=True)
    finally:
        if options.chrome is not None:
            trace.write(Path(options.chrome))
    if asked.by not in (0, signal.SIGINT):
        return exit_status(asked.by)
    return 0 if events else 1


@dataclass(frozen=True)
class Pace:
    """How often to look, and for how long (None: until the job ends), in seconds."""

    every: float
    duration: Optional[float]


class Asked:
    """Whether a signal has asked the command to end, and which."""

    def __init__(self) -> None:
        self.by = 0
        self.descriptor, self._says = os.pipe()  # readable once one has

    def hear(self, number: int) -> None:
        """Note the signal; the loop ends at its next step."""
        self.by = number
        os.write(self._says, b"!")


def named(target: str) -> Members:
    """Return the processes that a pid, job, file or folder names."""
    if not target.isdecimal() and not is_folder(target) and os.access(target, os.F_OK):
        return Members(open_target(core=target).description, (JobMember(0, core=target),), 1)
    return members_of(target)


def opened(members: Members) -> tuple[EventHeading, list[EventSource]]:
    """Those that can be followed, and what is to be said of the job first."""
    tried = [source_of(member) for member in members.found]
    sources = [source for source in tried if isinstance(source, EventSource)]
    problems = (*members.problems, *(problem for problem in tried if isinstance(problem, str)))
    notes = (source.note for source in sources if source.note)
    processes = tuple(source.process for source in sources)
    return EventHeading(members.name, members.count, processes, (*problems, *notes)), sources


def source_of(member: JobMember) -> Union[EventSource, str]:
    """Or a sentence about why there is none."""
    try:
        return EventSource(member)
    except RanklensError as error:
        return member.saying(str(error))


def rounds(follower: JobEvents, pace: Pace, asked: Asked) -> Iterator[list[Notice]]:
    """What each look finds, until the processes end, or for a time, or until a signal asks the command to end."""
    end = None if pace.duration is None else time.monotonic() + pace.duration
    while True:
        yield list(follower.look())
        left = pace.every if end is None else min(pace.every, end - time.monotonic())
        if follower.is_over or left <= 0 or asked.by:
            break
        follower.wait(left, asked.descriptor)
    yield list(follower.rest())


# ---- one line each ----


def begin(heading: EventHeading, is_json: bool) -> None:
    """Print the heading."""
    if is_json:
        processes = [
            {"process": process.index, "pid": process.pid or None, "node": process.node, "room": process.room}
            for process in heading.processes
        ]
        line = {**envelope(SCHEMA, heading.name, HOW), "process_count": heading.count, "processes": processes}
        print(json.dumps(line), flush=True)
        return
    listed = ", ".join(f"{process.index} (pid {process.pid})" for process in heading.processes if process.pid)
    print(harmless(f"{heading.name}" + (f": processes {listed}" if listed else "")), flush=True)


def as_line(notice: Notice) -> str:
    """`2026-03-01T14:02:11.000123  process 0  rank 3  leaves for process 1, move 2`."""
    if isinstance(notice, LostEvents):
        return f"! {notice.count} events of process {notice.process} are lost: newer ones have taken their places"
    if isinstance(notice, Ended):
        return harmless(f"process {notice.process} (pid {notice.pid}) {notice.why}")
    when = datetime.fromtimestamp(notice.realtime // 1_000_000_000).strftime("%Y-%m-%dT%H:%M:%S")
    whose = "all ranks" if notice.rank < 0 else f"rank {notice.rank}"
    return f"{when}.{notice.realtime // 1000 % 1_000_000:06}  process {notice.process}  {whose}  {saying(notice)}"


def saying(event: Event) -> str:
    """Return an event as a sentence's part."""
    move = f", move {event.moves}" if event.moves else ""
    if event.other_process == event.process and event.kind in CHECKPOINT:
        return CHECKPOINT[event.kind]
    if event.kind == "leaves":
        return f"leaves for {process(event.other_process)}{move}"
    if event.kind == "arrived":
        return f"arrived from {process(event.other_process)}{move}{element(event)}"
    return SENTENCES.get(event.kind, event.kind + (element(event) if event.kind == "created" else ""))


def process(index: int) -> str:
    """Return what messages call a process."""
    return "an unknown process" if index < 0 else f"process {index}"


def element(event: Event) -> str:
    """Return the processing element as a sentence's part, "" if it is unknown."""
    return "" if event.processing_element < 0 else f", processing element {event.processing_element}"


def as_json(notice: Notice) -> dict[str, object]:
    """The documented form."""
    if isinstance(notice, LostEvents):
        return {"event": "lost", "process": notice.process, "count": notice.count}
    if isinstance(notice, Ended):
        return {"event": "ended", "process": notice.process, "pid": notice.pid, "why": notice.why}
    return {
        "event": notice.kind,
        "number": notice.number,
        "monotonic": notice.monotonic,
        "realtime": notice.realtime,
        "process": notice.process,
        "rank": notice.rank,
        "processing_element": notice.processing_element,
        "other_process": notice.other_process,
        "moves": notice.moves,
    }
