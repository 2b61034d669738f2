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
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Optional, Union

from pieglobalsfind.decoders.registry.event_ring import Event
from pieglobalsfind.errors import RanklensError, TargetError
from pieglobalsfind.jobs.members import JobMember, Members, is_folder, members_of
from pieglobalsfind.shell.atomic_file import check_place
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.shell.signals import exit_status, on_signal
from pieglobalsfind.targets import open_target

from ..job.event_sources import Ended, EventSource, JobEvents, LostEvents, Notice
from ..job.recorder import seconds_of
from ..output import chrome_trace
from ..schemas.envelope import envelope, schema_name
from ..terminal.text import harmless
from .renamed_option import RenamedOption

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
        metavar="PID|JOB|CORE|DIR",
        help="a job: its launcher's pid, one of its processes', or its id; or a core file, or a checkpoint's folder",
    )
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
    members = named(options.target)
    sources = opened(members)
    begin(members, sources, options.json)
    trace = chrome_trace.Trace(members.name, {source.member.index: source.member.pid for source in sources})
    found, asked = 0, Asked()
    try:
        with on_signal(asked.hear):
            for one in followed(JobEvents(sources), every, 0.0 if options.no_follow else duration, asked):
                found += isinstance(one, Event)
                trace.add(one)
                print(json.dumps(as_json(one)) if options.json else as_line(one), flush=True)
    finally:
        if options.chrome is not None:
            trace.write(Path(options.chrome))
    if asked.by not in (0, signal.SIGINT):
        return exit_status(asked.by)
    return 0 if found else 1


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


def opened(members: Members) -> list[EventSource]:
    """Those that can be followed; of the others, print why not. Raises `TargetError` if there are none."""
    tried = [source_of(member) for member in members.found]
    sources = [one for one in tried if isinstance(one, EventSource)]
    problems = [*members.problems, *(one for one in tried if isinstance(one, str))]
    if not sources:
        raise TargetError(f"no process of {members.name} reports events", "; ".join(problems))
    for text in (*problems, *(source.note for source in sources if source.note)):
        print_error("inspector", text)
    return sources


def source_of(member: JobMember) -> Union[EventSource, str]:
    """Or a sentence about why there is none."""
    try:
        return EventSource(member)
    except RanklensError as error:
        return member.saying(str(error))


def followed(follower: JobEvents, every: float, duration: Optional[float], asked: Asked) -> Iterator[Notice]:
    """Everything until the processes end, or for `duration` seconds, or until a signal asks the command to end."""
    end = None if duration is None else time.monotonic() + duration
    while True:
        yield from follower.look()
        left = every if end is None else min(every, end - time.monotonic())
        if follower.is_over or left <= 0 or asked.by:
            break
        follower.wait(left, asked.descriptor)
    yield from follower.rest()


# ---- one line each ----


def begin(members: Members, sources: list[EventSource], is_json: bool) -> None:
    """Print the heading."""
    if is_json:
        processes = [
            {
                "process": source.member.index,
                "pid": source.member.pid or None,
                "node": source.ring.node,
                "room": source.ring.room,
            }
            for source in sources
        ]
        head = envelope(SCHEMA, members.name, HOW)
        line = {**head, "process_count": members.count, "processes": processes}
        print(json.dumps(line), flush=True)
        return
    listed = ", ".join(f"{source.member.index} (pid {source.member.pid})" for source in sources if source.member.pid)
    print(harmless(f"{members.name}" + (f": processes {listed}" if listed else "")), flush=True)


def as_line(one: Notice) -> str:
    """`2026-03-01T14:02:11.000123  process 0  rank 3  leaves for process 1, move 2`."""
    if isinstance(one, LostEvents):
        return f"! {one.count} events of process {one.process} are lost: newer ones have taken their places"
    if isinstance(one, Ended):
        return harmless(f"process {one.process} (pid {one.pid}) {one.why}")
    when = datetime.fromtimestamp(one.realtime // 1_000_000_000).strftime("%Y-%m-%dT%H:%M:%S")
    whose = "all ranks" if one.rank < 0 else f"rank {one.rank}"
    return f"{when}.{one.realtime // 1000 % 1_000_000:06}  process {one.process}  {whose}  {saying(one)}"


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


def as_json(one: Notice) -> dict[str, object]:
    """The documented form."""
    if isinstance(one, LostEvents):
        return {"event": "lost", "process": one.process, "count": one.count}
    if isinstance(one, Ended):
        return {"event": "ended", "process": one.process, "pid": one.pid, "why": one.why}
    return {
        "event": one.kind,
        "number": one.number,
        "monotonic": one.monotonic,
        "realtime": one.realtime,
        "process": one.process,
        "rank": one.rank,
        "processing_element": one.processing_element,
        "other_process": one.other_process,
        "moves": one.moves,
    }
