"""A report for people: rich tables that fit the terminal, plain text in a pipe.

Takes a `Report` and a console; every string of the target is put in as literal text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pieglobalsfind.commands.wording import waiting_text
from pieglobalsfind.model import Absent, Rank
from pieglobalsfind.rankset import compact

from .globals import GlobalValues, differing
from .payload import CATEGORIES, Payload
from .pointers import FALSE_POSITIVE, STALE, VERDICTS, Audit, Finding
from .report import Report
from .text import byte_count, harmless

MOST_GROUPS = 6
MOST_FINDINGS = 40
LONGEST_VALUE = 120
WIDE = 100  # columns from which on addresses are not folded


def print_report(report: Report, console: Console) -> None:
    """All parts, headed by what was read and how."""
    table = report.job.table
    console.print(Text(f"{harmless(report.job.target.description)}: {summary(report)}", style="bold"))
    console.print(Text(f"{report.job.how} ({report.job.taken})", style="dim"))
    for warning in (*report.warnings, *(harmless(one.sentence) for one in report.pointers.alarms)):
        console.print(Text(f"! {warning}", style="bold red"))
    print_ranks(table.ranks, console)
    print_globals(report, console)
    print_pointers(report.pointers, console)
    print_payload(report.payload, console)


def summary(report: Report) -> str:
    table = report.job.table
    here = len(report.job.present)
    method = harmless(table.method) + (f", rewrite {harmless(table.rewrite_mode)}" if table.rewrite_mode else "")
    return f"{here} of {table.rank_count} ranks, privatized by {method}, runtime {harmless(table.runtime)}"


def heading(console: Console, title: str, how: str) -> None:
    console.print()
    console.print(Text(title, style="bold cyan"), Text(how, style="dim"))


def new_table(columns: Sequence[str], right: Iterable[int] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        numeric = number in set(right)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    return table


def add_row(table: Table, cells: Iterable[str], style: str = "") -> None:
    table.add_row(*(Text(one) for one in cells), style=style)


def print_ranks(ranks: Sequence[Rank], console: Console) -> None:
    heading(console, "Ranks", "state as the runtime publishes it")
    table = new_table(("ranks", "state", "waits in", "element", "found by"))
    for (state, waits, element, tier), group in groupby(ranks, key=rank_row):
        add_row(table, (compact(one.rank for one in group), state, waits, element, tier))
    console.print(table)


def rank_row(rank: Rank) -> tuple[str, str, str, str]:
    waits = harmless(waiting_text(rank.waiting)) if rank.waiting is not None else "-"
    return rank.state, waits, str(rank.processing_element), rank.evidence.tier


def print_globals(report: Report, console: Console) -> None:
    found = list(differing(report.globals))
    total = len(report.globals.values)
    heading(console, "Globals", f"{len(found)} of {total} differ between ranks; {total - len(found)} are equal on all")
    if not found:
        return
    table = new_table(("variable", "declared", "type", "ranks", "value"))
    for one in found:
        add_global(table, one)
    console.print(table)


def add_global(table: Table, found: GlobalValues) -> None:
    declared = f"{found.file.rpartition('/')[2]}:{found.line}"
    shown = found.groups if len(found.groups) <= MOST_GROUPS else found.groups[: MOST_GROUPS - 1]
    lead = (found.name, declared, found.type)
    for group in shown:
        value = group.value if len(group.value) <= LONGEST_VALUE else group.value[:LONGEST_VALUE] + "..."
        add_row(table, (*lead, compact(group.ranks), value))
        lead = ("", "", "")
    if len(shown) < len(found.groups):
        add_row(table, (*lead, "", f"... {len(found.groups) - len(shown)} more values"), "dim")


def print_pointers(audit: Audit, console: Console) -> None:
    heading(console, "Pointers", "each copy compared with its original, word by word")
    table = new_table(("object", *VERDICTS), range(1, len(VERDICTS) + 1))
    for name in sorted({name for name, _ in audit.counts}):
        counts = (str(audit.counts.get((name, verdict), 0)) for verdict in VERDICTS)
        add_row(table, (harmless(name.rpartition("/")[2]), *counts))
    console.print(table)
    print_findings([one for one in audit.findings if one.verdict in (FALSE_POSITIVE, STALE)], console)


def print_findings(found: list[Finding], console: Console) -> None:
    if not found:
        return
    table = new_table(
        ("ranks", "finding", "word", "type", "was", "is", "right"), (4, 5, 6) if console.width >= WIDE else ()
    )
    grouped: dict[tuple[str, str, int], list[Finding]] = {}
    for one in found:
        grouped.setdefault((one.verdict, one.object, one.offset), []).append(one)
    for same in list(grouped.values())[:MOST_FINDINGS]:
        add_finding(table, same)
    console.print(table)
    if len(grouped) > MOST_FINDINGS:
        console.print(Text(f"... {len(grouped) - MOST_FINDINGS} more, see --json", style="dim"))


def add_finding(table: Table, same: list[Finding]) -> None:
    """One word of all the ranks that share the finding; addresses are the first one's."""
    first = same[0]
    word = first.ground.symbol or f"{harmless(first.object.rpartition('/')[2])}+{first.offset:#x}"
    right = "?" if isinstance(first.right, Absent) else hex(first.right)
    cells = (first.verdict, word, first.ground.type or first.ground.source, hex(first.old), hex(first.new), right)
    add_row(table, (compact(one.rank for one in same), *cells), "red" if first.verdict == STALE else "yellow")


def print_payload(payload: Sequence[Payload], console: Console) -> None:
    heading(console, "Payload", "what would move with a rank, from the registry and the objects' headers")
    table = new_table(("ranks", "total", "of which"), (1,))
    for (total, parts), group in groupby(payload, key=payload_row):
        add_row(table, (compact(one.rank for one in group), total, parts))
    console.print(table)
    for note in dict.fromkeys(note for one in payload for note in one.notes):
        console.print(Text(f"  {harmless(note)}", style="dim"))


def payload_row(found: Payload) -> tuple[str, str]:
    """The total, and the categories that are not empty: `code 1.1 KB, heap used 2.0 MB`."""
    sizes = ((name.replace("_", " "), getattr(found, name)) for name in CATEGORIES)
    return byte_count(found.total), ", ".join(f"{name} {byte_count(size)}" for name, size in sizes if size)
