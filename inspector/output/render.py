"""A report for people: rich tables that fit the terminal, plain text in a pipe.

Takes a `Report` and a console; every string of the target is put in as literal text, never as markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Union

from rich.console import Console
from rich.text import Text

from pieglobalsfind.debugger.wording import element_text, noun, state_word, waiting_text
from pieglobalsfind.model import Absent, Rank, Waiting
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.values.statistics import sparkline

from ..analysis.payload import CATEGORIES, Payload
from ..analysis.rank_memory import Holding, holdings
from ..job.job import Job, Subject, subject_of
from ..terminal.text import byte_count, declared, harmless, of_ranks, shortened
from .how import print_how
from .listing import Listing

if TYPE_CHECKING:  # what one part alone needs is loaded when it is printed
    from ..analysis.diagnoses import Diagnosis
    from ..analysis.globals import Globals, GlobalValues
    from ..analysis.migration_cost import Network, WhatIf
    from ..analysis.report import Report
    from ..analysis.verdict import Verdict
    from ..pointers.findings import Audit, PointerFinding

MOST_GROUPS = 6
MOST_FINDINGS = 40
MOST_SHARED = 6
LONGEST_VALUE = 120
SHORT_VALUE = 24
LONGEST_RANKS = 30
MOST_RANK_ROWS = 24
NAN = re.compile(r"(?<![\w.'\"])-?nan(?:\(0x[0-9a-f]+\))?(?![\w.'\"])", re.IGNORECASE)  # as GDB and printf write it
WIDE = 100  # columns from which on addresses are not folded


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


def heading(console: Console, title: str, how: str) -> None:
    """Print a heading with its subtitle."""
    console.print()
    console.print(Text.assemble((f"{title}: ", "bold cyan"), (how, "dim")))


def ranks_text(ranks: Iterable[int]) -> str:
    """`0-3,7`; of many ranges the first few and how many ranks there are: `0,3,20,22,... (471 ranks)`."""
    found = list(ranks)
    text = compact(found)
    if len(text) <= LONGEST_RANKS:
        return text
    return f"{text[:LONGEST_RANKS].rpartition(',')[0]},... ({len(found)} ranks)"


def ranks_cell(ranks: Iterable[int], console: Console) -> str:
    """A cell of a table: all ranks where a row is a record for other programs, else as `ranks_text` has it."""
    return compact(ranks) if has_records(console) else ranks_text(ranks)


def _print_diagnoses(diagnosises: Sequence[Diagnosis], console: Console) -> None:
    from ..analysis.diagnoses import RISK

    for diagnosis in diagnosises:
        console.print(
            Text(
                harmless(f"! {diagnosis.id}: {diagnosis.cause}"),
                style="bold red" if diagnosis.severity != RISK else "yellow",
            )
        )
        console.print(Text(harmless(f"  {diagnosis.evidence}; cure: {diagnosis.cure}")))


def print_ranks(found: Sequence[Holding], console: Console) -> None:
    """Ranks of the same state in one row; what differs from rank to rank as its range."""
    published = all(holding.rank.evidence.tier == "registry" for holding in found)
    how = "state as the runtime publishes it" if published else "state as far as it can be found"
    tiers = {holding.rank.evidence.tier for holding in found}
    heading(console, "Ranks", f"found by {tiers.pop()}, {how}" if len(tiers) == 1 else how)
    numbers = {holding.rank.rank: holding for holding in found}
    rows = by_cells((holding.rank.rank, rank_row(holding.rank, waiting_text)) for holding in found)
    if len(rows) > MOST_RANK_ROWS and not has_records(console):
        rows = by_cells((holding.rank.rank, rank_row(holding.rank, lambda waiting: waiting.call)) for holding in found)
    is_mixed = len({holding.rank.evidence.tier for holding in found}) > 1
    tier = ("found by",) if is_mixed else ()
    table = Listing(("ranks", "state", "waits in", "element", *tier, "switches", "memory"))
    for cells, ranks in rows.items():
        same = [numbers[rank] for rank in ranks]
        switches = range_text([holding.switches for holding in same], str)
        memory = range_text([holding.total for holding in same], byte_count)
        table.add((ranks_cell(ranks, console), *(cells if is_mixed else cells[:-1]), switches, memory))
    console.print(table)
    for (note,), ranks in by_cells(
        (holding.rank.rank, (note,)) for holding in found for note in holding.unknown
    ).items():
        console.print(Text(f"  {of_ranks(ranks_text(ranks))}: {harmless(note)}", style="dim"))


def range_text(values: Sequence[Union[int, Absent]], wording: Callable[[int], str]) -> str:
    """`7`, or `3 to 12` of several; `?` if one of them can't be had."""
    known = [value for value in values if not isinstance(value, Absent)]
    if len(known) < len(values) or not known:
        return "?"
    low, high = wording(min(known)), wording(max(known))
    return low if low == high else f"{low} to {high}"


def print_memory(found: Sequence[Holding], console: Console) -> None:
    """Bytes by category; ranks that hold the same in one row."""
    heading(console, "Memory", "of each rank's image, by category")
    images = [(holding.rank.rank, holding.memory) for holding in found if not isinstance(holding.memory, Absent)]
    shown = [name for name in CATEGORIES if any(sizes[name] != 0 for _, sizes in images)]
    rows = [(rank, tuple(size_text(sizes[name]) for name in shown)) for rank, sizes in images]
    print_sizes([name.replace("_", " ") for name in shown], rows, console)


def print_sizes(names: Sequence[str], rows: Iterable[tuple[int, tuple[str, ...]]], console: Console) -> None:
    """A column for each name, or, where a terminal is too narrow for that, all in one that is folded."""
    wide = console.width >= WIDE
    table = Listing(("ranks", *names), range(1, len(names) + 1)) if wide else Listing(("ranks", "of which"))
    for cells, ranks in by_cells(rows).items():
        listed = ", ".join(f"{name} {cell}" for name, cell in zip(names, cells))
        table.add((ranks_cell(ranks, console), *(cells if wide else (listed,))))
    console.print(table)


def size_text(size: Optional[int]) -> str:
    """Return a byte count with its unit, "?" if it is unknown."""
    return "?" if size is None else byte_count(size)


def by_cells(rows: Iterable[tuple[int, tuple[str, ...]]]) -> dict[tuple[str, ...], list[int]]:
    """The ranks that share a row, in the order of the first of them."""
    found: dict[tuple[str, ...], list[int]] = {}
    for rank, cells in rows:
        found.setdefault(cells, []).append(rank)
    return found


def rank_row(rank: Rank, wording: Callable[[Waiting], str]) -> tuple[str, ...]:
    """Return a rank's cells."""
    waits = harmless(wording(rank.waiting)) if rank.waiting is not None else "-"
    return state_word(rank), waits, element_text(rank), rank.evidence.tier


def print_globals(report: Report, console: Console) -> None:
    """Print the globals that differ."""
    from ..analysis.globals import differing
    from ..analysis.outliers import by_rarity

    global_valueses = by_rarity(differing(report.globals))
    heading(console, "Globals", counted(report.globals.values, "ranks"))
    print_needless(report.globals, console)
    print_apart(report.globals, "inspector globals --all", console)
    print_shared(report.globals, console)
    if not global_valueses:
        return
    table = Listing(("variable", "declared", "type", "ranks", "value"), below=(3, 4))
    for global_values in global_valueses:
        add_global(table, global_values, console)
    console.print(table)


def counted(global_valueses: Sequence[GlobalValues], among: str) -> str:
    """How many differ between the ranks, are equal, or are not known."""
    if global_valueses and all(
        sum(len(group.ranks) for group in global_values.groups) == 1 for global_values in global_valueses
    ):
        return f"{len(global_valueses)} on the only rank, with none to compare them with"
    differing, known = (
        sum(global_values.differs for global_values in global_valueses),
        sum(global_values.is_known for global_values in global_valueses),
    )
    partly = sum(
        bool(global_values.uncompared)
        for global_values in global_valueses
        if global_values.is_known and not global_values.differs
    )
    unread = f"; {len(global_valueses) - known} can't be read" if known < len(global_valueses) else ""
    uncompared = f"; {partly} not compared" if partly else ""
    equal = known - differing - partly
    differ, are = "differs" if differing == 1 else "differ", "is" if equal == 1 else "are"
    return f"{differing} of {len(global_valueses)} {differ} between {among}; {equal} {are} equal{uncompared}{unread}"


def print_apart(found: Globals, how: str, console: Console) -> None:
    """How many variables of the runtime's own are left out, and how to see them."""
    if found.apart:
        console.print(Text(f"  {left_out(found.apart, how)}"), soft_wrap=True)


def left_out(count: int, how: str) -> str:
    """Return the sentence about variables that are not shown."""
    return f"{count} variables of the MPI runtime and the C library are left out, `{how}` shows them"


def print_needless(found: Globals, console: Console) -> None:
    """How much of what is private need not be, as far as this moment tells."""
    if found.needless:
        size = byte_count(found.needless)
        console.print(Text(f"  {size} of each rank are the same on all ranks, and might be shared", style="dim"))


def print_shared(found: Globals, console: Console) -> None:
    """What the method leaves one for several ranks: where results differ from a native run's, look here."""
    from ..analysis.globals import SHARED

    shared = [value for value in found.values if value.verdict == SHARED]
    names = ", ".join(
        f"{global_values.name} in {Path(global_values.object).name}" for global_values in shared[:MOST_SHARED]
    )
    more = f" and {len(shared) - MOST_SHARED} more" if len(shared) > MOST_SHARED else ""
    if shared:
        console.print(Text(f"  one for several ranks, whatever they write: {harmless(names)}{more}", style="yellow"))


def has_records(console: Console) -> bool:
    """Whether every record is a line of its own."""
    return bool(getattr(console, "has_records", False))


def only_tables(console: Console) -> bool:
    """Whether a program reads it, which wants every value."""
    return bool(getattr(console, "only_tables", False))


def add_global(table: Listing, global_values: GlobalValues, console: Console, verdicts: bool = False) -> None:
    """A row for each value: where no terminal reads, none is left out, and several are never in one row.

    Of many different numbers their statistics stand there instead, unless a program reads them.
    """
    lead = (
        global_values.name,
        declared(global_values.file, global_values.line),
        global_values.type,
        *((global_values.verdict,) if verdicts else ()),
    )
    for ranks, value in rows_of(global_values, console):
        shown = value if has_records(console) else with_nan(value, shortened(value, LONGEST_VALUE))
        table.add((*lead, ranks, shown))
        lead = ("",) * len(lead)


def rows_of(global_values: GlobalValues, console: Console) -> Iterable[tuple[str, str]]:
    """Return a variable's rows: each rank's value in a table, else groups."""
    if only_tables(console) or (has_records(console) and global_values.statistics is None):
        return [(compact(group.ranks), group.value) for group in global_values.groups]
    return (*value_rows(global_values), *spark_rows(global_values))


def is_nan(value: str) -> bool:
    """Whether a value is a NaN, or holds one."""
    return NAN.search(value) is not None


def with_nan(value: str, shown: str) -> str:
    """What is shown of a value, which says so if a NaN is in what is left out."""
    return f"{shown} (nan is in the rest)" if is_nan(value) and not is_nan(shown) else shown


def spark_rows(global_values: GlobalValues) -> Iterable[tuple[str, str]]:
    """A bar for each rank, where a terminal shows them."""
    if global_values.statistics is None or not (
        sys.stdout.isatty() and (sys.stdout.encoding or "").lower().startswith("utf")
    ):
        return []
    return [("", sparkline(global_values.by_rank.values()))]


def value_rows(global_values: GlobalValues) -> Iterable[tuple[str, str]]:
    """A row per value; many short values of one rank each in a single row, `0: 17, 1: 18, ...`."""
    groups = global_values.groups
    statistics = global_values.statistics
    if statistics is not None:
        return [(ranks_text(global_values.by_rank), f"{len(groups)} values, {statistics.sentence}")]
    if len(groups) > 2 and all(len(group.ranks) == 1 and len(group.value) <= SHORT_VALUE for group in groups):
        ranks = ranks_text(rank for group in groups for rank in group.ranks)
        return [(ranks, ", ".join(f"{group.ranks[0]}: {group.value}" for group in groups))]
    most = MOST_GROUPS if len(groups) <= MOST_GROUPS else MOST_GROUPS - 1
    shown = [one for at, one in enumerate(groups) if at < most or is_nan(one.value)]  # a NaN is never left out
    rows = [(ranks_text(one.ranks), one.value) for one in shown]
    left = [rank for at, one in enumerate(groups) if at >= most and not is_nan(one.value) for rank in one.ranks]
    return [*rows, (compact(left), f"... {len(groups) - len(shown)} more values")] if left else rows


def print_pointers(audit: Audit, console: Console) -> None:
    """Print the pointer check."""
    from ..pointers.findings import ALARMING, VERDICTS

    heading(console, "Pointers", "each copy compared with its original, word by word; heaps and stacks scanned")
    table = Listing(("object", *VERDICTS), range(1, len(VERDICTS) + 1))
    for name in sorted({name for name, _ in audit.counts}):
        counts = (str(audit.counts.get((name, verdict), 0)) for verdict in VERDICTS)
        table.add((harmless(name.rpartition("/")[2]), *counts))
    console.print(table if audit.counts else Text("  no rank has copies whose words can be read", style="dim"))
    _print_findings([finding for finding in audit.findings if finding.verdict in ALARMING], console)
    for reason, ranks in audit.unread_by_reason.items():
        console.print(Text(f"  {of_ranks(ranks_text(ranks))}: {harmless(reason)}", style="dim"))


def _print_findings(pointer_findings: list[PointerFinding], console: Console) -> None:
    if not pointer_findings:
        return
    table = Listing(
        ("ranks", "finding", "word", "type", "was", "is", "right"), (4, 5, 6) if console.width >= WIDE else ()
    )
    grouped: dict[tuple[str, str, int, str], list[PointerFinding]] = {}
    for pointer_finding in pointer_findings:
        grouped.setdefault(
            (pointer_finding.verdict, pointer_finding.object, pointer_finding.offset, pointer_finding.ground.symbol), []
        ).append(pointer_finding)
    most = len(grouped) if has_records(console) else MOST_FINDINGS
    for same in list(grouped.values())[:most]:
        add_finding(table, same, console)
    console.print(table)
    if len(grouped) > most:
        console.print(Text(f"... {len(grouped) - most} more, see --json", style="dim"))


def add_finding(table: Listing, same: list[PointerFinding], console: Console) -> None:
    """One word of all the ranks that share the finding; addresses are the first one's."""
    from ..pointers.findings import ANOTHER_RANKS, FALSE_POSITIVE

    first = same[0]
    word = first.ground.symbol or f"{harmless(first.object.rpartition('/')[2])}+{first.offset:#x}"
    right = "?" if isinstance(first.right, Absent) else hex(first.right)
    kind = first.ground.source if first.verdict == ANOTHER_RANKS else first.ground.type or first.ground.source
    cells = (first.verdict, word, kind, hex(first.old), hex(first.new), right)
    table.add(
        (ranks_cell((pointer_finding.rank for pointer_finding in same), console), *cells),
        "yellow" if first.verdict == FALSE_POSITIVE else "red",
    )


def print_payload(payload: Sequence[Payload], console: Console) -> None:
    """Print the payload."""
    heading(console, "Payload", "what would move with a rank, by category")
    table = Listing(("ranks", "total", "of which"), (1,))
    for cells, numbers in by_cells((one.rank, payload_row(one)) for one in payload).items():
        table.add((ranks_cell(numbers, console), *cells))
    console.print(table)
    for (note,), numbers in by_cells((one.rank, (note,)) for one in payload for note in one.notes).items():
        console.print(Text(f"  {of_ranks(ranks_text(numbers))}: {harmless(note)}", style="dim"))


def payload_row(payload: Payload) -> tuple[str, ...]:
    """The total, and the categories that are not empty: `code 1.1 KB, heap used 2.0 MB`."""
    sizes = ((name.replace("_", " "), getattr(payload, name)) for name in CATEGORIES)
    return byte_count(payload.total), ", ".join(f"{name} {byte_count(size)}" for name, size in sizes if size)


def print_what_if(what_ifs: Sequence[WhatIf], link: Network, console: Console) -> None:
    """Print what ways of migrating would send."""
    from ..analysis.migration_cost import WAYS

    rate = f"{byte_count(int(link.bandwidth))}/s, {link.latency * 1e6:g} us"
    heading(console, "What if", f"bytes to send, and the time at {rate}, without packing")
    print_sizes(
        [name.replace("_", " ") for name in WAYS],
        [(what_if.rank, _what_if_row(what_if, link)) for what_if in what_ifs],
        console,
    )
    for line in WHAT_IF_WORDS:
        console.print(Text(f"  {line}", style="dim"))
    for (unread,), ranks in by_cells(
        (what_if.rank, (byte_count(what_if.unread),)) for what_if in what_ifs if what_if.unread
    ).items():
        words = f"  {unread} of {of_ranks(ranks_text(ranks))} can't be read, and count as differing"
        console.print(Text(words, style="yellow"))


WHAT_IF_WORDS = (
    "shared code: code and constants are mapped from the file; used stack: its unused part stays behind;",
    "differing: pages that are zero or as in the original stay behind, but for the unused stack's, which are not read;",
    "smallest: the last two together",
)


def _what_if_row(what_if: WhatIf, link: Network) -> tuple[str, ...]:
    from ..analysis.migration_cost import WAYS

    sizes = (getattr(what_if, name) for name in WAYS)
    return tuple(f"{byte_count(size)} {1e6 * link.seconds(size):.1f} us" for size in sizes)
