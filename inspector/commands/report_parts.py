"""`inspector ranks`, `pointers` and `payload`: the parts of a report, one at a time.

Takes a process or a core file; shows one part, read alone, as a table or as that part of the report's JSON.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell.exit_status import print_error

from ..analysis.payload import read_payload
from ..analysis.rank_memory import holdings
from ..analysis.report import payload_as_json, pointers_as_json, rank_as_json, what_if_as_json
from ..analysis.report_schema import PARTS as PART_SCHEMAS
from ..job.job import Job, say_warnings, subject_of, with_waits
from ..job.reading import add_way, read_target, way_of
from ..schemas import envelope
from ..terminal.forms import add_tsv, print_json
from ..terminal.text import harmless
from . import COMMANDS

if TYPE_CHECKING:  # the other parts are loaded when they are read, and what prints when something is printed
    from rich.console import Console

Part = Callable[[Job, argparse.Namespace], "ReportPart"]


@dataclass(frozen=True)
class ReportPart:
    """One part: how it is printed, its JSON, whether there is anything in it, and what could not be read."""

    show: Callable[[Console], None]
    json: dict[str, Any]
    found: bool
    complaints: tuple[str, ...] = ()


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what one of the commands takes."""
    command = parser.get_default("command")
    summary = COMMANDS[command][1]
    parser.description = f"Show {summary}. The target is not changed; a process is paused for milliseconds at most."
    parser.epilog = "exit status: 0 done, 1 nothing found, 2 bad call or unreadable target"
    parser.add_argument("target", metavar="PID|FILE", help="a running process, a core file, or a snapshot")
    parser.add_argument("--exe", metavar="FILE", help="the program that left the core file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON (docs/report-schema.md#parts)")
    add_tsv(form)
    add_way(parser)
    parser.set_defaults(run=run)
    if command == "payload":
        _add_payload_to(parser)


def _add_payload_to(parser: argparse.ArgumentParser) -> None:
    from ..analysis.migration_cost import parse_bandwidth, parse_latency

    parser.add_argument("--what-if", action="store_true", help="what smarter migration would send, page by page")
    link = parser.add_argument_group("link", "over which --what-if is to send")
    link.add_argument("--bandwidth", metavar="RATE", type=parse_bandwidth, help="12.5GB/s (default), 100Gb/s")
    link.add_argument("--latency", metavar="TIME", type=parse_latency, help="2us (default)")


def run(options: argparse.Namespace) -> int:
    """Run one of the report's parts; returns the exit status."""
    if options.command == "payload" and not options.what_if and (options.bandwidth or options.latency) is not None:
        raise UsageError("--bandwidth and --latency are of a link", "add --what-if, or leave them out")
    job, shown = read_target(
        options.target,
        options.exe,
        way_of(options),
        lambda job: (job, PARTS[options.command](job, options)),
        is_whole=lambda read: True,
        with_requests=options.command == "ranks",
    )
    for complaint in shown.complaints:
        print_error("inspector", complaint)
    say_warnings(job)
    if options.json:
        subject = subject_of(job.bulk)
        head = envelope(PART_SCHEMAS[options.command], harmless(subject.description), subject.how, subject.taken)
        print_json({**head, **shown.json})
    else:
        from ..output.provenance import print_how
        from ..terminal.console import console

        screen = console(options.tsv)
        print_how(subject_of(job.bulk), screen)
        shown.show(screen)
    return 0 if shown.found else 1


def ranks(job: Job, options: argparse.Namespace) -> ReportPart:
    """Read ranks, for `inspector ranks`."""
    holding_rows = holdings(with_waits(job).table.ranks, read_payload(job.bulk))

    def show(screen: Console) -> None:
        from ..output.rank_tables import print_memory, print_ranks

        print_ranks(holding_rows, screen)
        print_memory(holding_rows, screen)

    return ReportPart(show, {"ranks": [rank_as_json(holding) for holding in holding_rows]}, bool(holding_rows))


def pointers(job: Job, options: argparse.Namespace) -> ReportPart:
    """Check pointers, for `inspector pointers`."""
    from ..pointers.check import audit_pointers

    audit = audit_pointers(job.bulk)
    complaints = tuple(
        harmless(f"{absent.reason}: {absent.hint}" if absent.hint else absent.reason) for absent in audit.absent
    )

    def show(screen: Console) -> None:
        from rich.text import Text

        from ..output.pointer_tables import print_pointers

        for alarm in audit.alarms:
            screen.print(Text(f"! {harmless(alarm.sentence)}", style="bold red"))
        print_pointers(audit, screen)

    return ReportPart(show, pointers_as_json(audit), bool(audit.counts), complaints)


def payload(job: Job, options: argparse.Namespace) -> ReportPart:
    """Read the payload, for `inspector payload`."""
    job = job.bulk
    payloads = read_payload(job)
    if options.what_if:
        from ..analysis.migration_cost import Network, what_if

        link = Network(
            options.bandwidth or Network.bandwidth, Network.latency if options.latency is None else options.latency
        )
        cases = what_if(job, payloads)
        content = [what_if_as_json(case, link) for case in cases]

        def show_cases(screen: Console) -> None:
            from ..output.payload_tables import print_what_if

            print_what_if(cases, link, screen)

        return ReportPart(show_cases, {"what_if": content}, bool(cases))

    def show(screen: Console) -> None:
        from ..output.payload_tables import print_payload

        print_payload(payloads, screen)

    return ReportPart(show, {"payload": [payload_as_json(size) for size in payloads]}, bool(payloads))


PARTS: dict[str, Part] = {"ranks": ranks, "pointers": pointers, "payload": payload}
