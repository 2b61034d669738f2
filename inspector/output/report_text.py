"""A report as text for a terminal or a pipe: its verdict first, then each part's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pieglobalsfind.debugger.wording import noun

from ..analysis.rank_memory import holdings
from ..job.job import Job, Subject, subject_of
from ..terminal.text import harmless
from .global_tables import print_globals
from .payload_tables import print_payload
from .pointer_tables import print_pointers
from .provenance import print_how
from .rank_tables import print_ranks

if TYPE_CHECKING:  # what one part alone needs is loaded when it is printed
    from ..analysis.method_diagnoses import Diagnosis
    from ..analysis.report import Report
    from ..analysis.verdict import Verdict


def print_report(report: Report, verdict: Verdict, console: Console) -> None:
    """All parts, headed by what was read and how, and by what is wrong."""
    table = report.subject.table
    console.print(Text(subject_summary(report.subject), style="bold"))
    print_how(report.subject, console)
    print_verdict(verdict, console)
    for warning in (*report.warnings, *(harmless(alarm.sentence) for alarm in report.pointers.alarms)):
        console.print(Text(f"! {warning}", style="bold red"))
    print_ranks(holdings(table.ranks, report.payload), console)
    print_globals(report, console)
    print_pointers(report.pointers, console)
    print_payload(report.payload, console)


def print_verdict(verdict: Verdict, console: Console) -> None:
    """What is wrong, which ranks stand out and in what, and what to type next."""
    console.print(Text(harmless(verdict.headline), style=verdict_style(verdict)))
    for finding in verdict.findings:
        console.print(Text(f"- {harmless(finding.sentence)}"))
    console.print(Text(f"next: {harmless(verdict.command)}", style="dim"))
    _print_diagnoses(verdict.diagnoses, console)


def verdict_style(verdict: Verdict) -> str:
    """Return the verdict's colour."""
    from ..analysis.verdict import HEALTHY, IMBALANCE

    return {HEALTHY: "bold green", IMBALANCE: "bold yellow"}.get(verdict.kind, "bold red")


def job_summary(job: Job) -> str:
    """Return a job's one-line summary."""
    return subject_summary(subject_of(job))


def subject_summary(subject: Subject) -> str:
    """`process 4711: 8 of 8 ranks, privatized by pie, rewrite scan, runtime embedded 1`."""
    return f"{harmless(subject.description)}: {summary(subject)}"


def summary(subject: Subject) -> str:
    """Return the one-line summary of what was read."""
    table = subject.table
    here = len(subject.present)
    method = harmless(table.method) + (f", rewrite {harmless(table.rewrite_mode)}" if table.rewrite_mode else "")
    count = f"{here} of {table.rank_count} {noun(table.ranks)}"
    return f"{count}, privatized by {method}, runtime {harmless(table.runtime)}"


def _print_diagnoses(diagnoses: Sequence[Diagnosis], console: Console) -> None:
    from ..analysis.method_diagnoses import RISK

    for diagnosis in diagnoses:
        console.print(
            Text(
                harmless(f"! {diagnosis.id}: {diagnosis.cause}"),
                style="bold red" if diagnosis.severity != RISK else "yellow",
            )
        )
        console.print(Text(harmless(f"  {diagnosis.evidence}; cure: {diagnosis.cure}")))
