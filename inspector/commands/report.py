"""`inspector report`: print the whole report of one process, a file of one, or a job.

Takes the command line's options; prints the report, writes its HTML, and gives an exit status.
"""

from __future__ import annotations

import argparse
import functools
import shlex
from pathlib import Path

from pieglobalsfind.shell.atomic_file import check_place

from ..analysis import stack_groups
from ..analysis.judge_job import verdict_of
from ..analysis.report import Report, as_json
from ..analysis.verdict import Verdict
from ..collect import mpi_option, whole_job
from ..job.reading import add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..output.report_text import print_report
from ..terminal.console import console
from ..terminal.forms import print_json


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show a job's ranks, the globals that differ between them, pointers that the "
        "runtime rewrote wrongly or missed, and what would move with each rank."
    )
    parser.epilog = "exit status: 0 done, 1 no ranks found, 2 bad call or unreadable target"
    add_target(parser)
    mpi_option.add_to(parser)
    parser.add_argument("--json", action="store_true", help="as JSON (docs/report-schema.md)")
    parser.add_argument("--html", metavar="FILE", help="also as one HTML file, with pictures and tables to search")
    add_way(parser)
    parser.set_defaults(run=_run_report)


def _write_html(findings: whole_job.Findings, report: Report, verdict: Verdict, path: str) -> None:
    from ..output import html  # late: a report without it needs no template engine

    html.write(
        path, html.as_html(report, verdict, dict(stack_groups.merge((findings.calls,)).by_rank()), findings.sizes)
    )


def _run_report(options: argparse.Namespace) -> int:
    if options.html is not None:
        check_place(Path(options.html), "name another file by --html")
    if mpi_option.is_collector(options):
        return mpi_option.guarded(lambda: _run_collector(options))
    members = job_named(options.job, options.target, options.exe)
    if members is not None:
        findings = whole_job.read_members(members, way_of(options), bool(options.html))
        report = whole_job.finished(findings, members.name, members.count)
    else:
        read = functools.partial(whole_job.read_one, pictures=bool(options.html))
        way = way_of(options)
        findings, report = read_target(options.target, options.exe, way, read, with_data=True, with_requests=True)
    return show_report(findings, report, options)


def named(options: argparse.Namespace) -> str:
    """The target as the user typed it, for the commands that the verdict names."""
    words = ["--job", options.job] if options.job is not None else [options.target]
    return shlex.join([*words, *(["--exe", options.exe] if options.exe is not None else [])])


def _run_collector(options: argparse.Namespace) -> int:
    from ..collect import collectors  # late: only this needs them

    reading = whole_job.reading_of_report(options.job or "", bool(options.html))
    with collectors.gathered(reading, mpi_option.timeout_of(options)) as gathered:
        if gathered.findings is None:
            return 0
        report = whole_job.finished(gathered.findings, gathered.name, gathered.count)
        options.job = options.job or gathered.name.partition(" ")[2]
        return show_report(gathered.findings, report, options)


def show_report(findings: whole_job.Findings, report: Report, options: argparse.Namespace) -> int:
    """Print a report in the form that the options ask for; returns the exit status."""
    verdict = verdict_of(report, named(options))
    if options.html is not None:
        _write_html(findings, report, verdict, options.html)
    if options.json:
        print_json(as_json(report, verdict))
    else:
        print_report(report, verdict, console())
    return 0 if report.subject.table.ranks else 1
