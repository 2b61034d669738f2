"""Globals as tables: each variable's value on every rank, equal values together. A NaN never hides in a group."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.values.rank_statistics import sparkline

from ..terminal.text import byte_count, declared, harmless, shortened
from .adaptive_table import Listing
from .table_cells import has_records, heading, only_tables, ranks_text

if TYPE_CHECKING:  # what one part alone needs is loaded when it is printed
    from ..analysis.global_values import Globals, GlobalValues
    from ..analysis.report import Report

MOST_GROUPS = 6
MOST_SHARED = 6
LONGEST_VALUE = 120
SHORT_VALUE = 24
NAN = re.compile(r"(?<![\w.'\"])-?nan(?:\(0x[0-9a-f]+\))?(?![\w.'\"])", re.IGNORECASE)  # as GDB and printf write it


def print_globals(report: Report, console: Console) -> None:
    """Print the globals that differ."""
    from ..analysis.global_values import by_rarity, differing

    variables = by_rarity(differing(report.globals))
    heading(console, "Globals", counted(report.globals.values, "ranks"))
    print_needless(report.globals, console)
    print_apart(report.globals, "inspector globals --all", console)
    print_shared(report.globals, console)
    if not variables:
        return
    table = Listing(("variable", "declared", "type", "ranks", "value"), below=(3, 4))
    for global_values in variables:
        add_global(table, global_values, console)
    console.print(table)


def counted(variables: Sequence[GlobalValues], among: str) -> str:
    """How many differ between the ranks, are equal, or are not known."""
    if variables and all(sum(len(group.ranks) for group in global_values.groups) == 1 for global_values in variables):
        return f"{len(variables)} on the only rank, with none to compare them with"
    differing, readable = (
        sum(global_values.differs for global_values in variables),
        sum(global_values.is_known for global_values in variables),
    )
    partly = sum(
        bool(global_values.uncompared)
        for global_values in variables
        if global_values.is_known and not global_values.differs
    )
    unread = f"; {len(variables) - readable} can't be read" if readable < len(variables) else ""
    uncompared = f"; {partly} not compared" if partly else ""
    equal = readable - differing - partly
    differ, are = "differs" if differing == 1 else "differ", "is" if equal == 1 else "are"
    return f"{differing} of {len(variables)} {differ} between {among}; {equal} {are} equal{uncompared}{unread}"


def print_apart(variables: Globals, how: str, console: Console) -> None:
    """How many variables of the runtime's own are left out, and how to see them."""
    if variables.apart:
        console.print(Text(f"  {left_out(variables.apart, how)}"), soft_wrap=True)


def left_out(count: int, how: str) -> str:
    """Return the sentence about variables that are not shown."""
    return f"{count} variables of the MPI runtime and the C and C++ libraries are left out, `{how}` shows them"


def print_needless(variables: Globals, console: Console) -> None:
    """How much of what is private need not be, as far as this moment tells."""
    if variables.needless:
        size = byte_count(variables.needless)
        console.print(Text(f"  {size} of each rank are the same on all ranks, and might be shared", style="dim"))


def print_shared(variables: Globals, console: Console) -> None:
    """What the method leaves one for several ranks: where results differ from a native run's, look here."""
    from ..analysis.global_values import SHARED

    shared = [value for value in variables.values if value.verdict == SHARED]
    names = ", ".join(
        f"{global_values.name} in {Path(global_values.object).name}" for global_values in shared[:MOST_SHARED]
    )
    more = f" and {len(shared) - MOST_SHARED} more" if len(shared) > MOST_SHARED else ""
    if shared:
        console.print(Text(f"  one for several ranks, whatever they write: {harmless(names)}{more}", style="yellow"))


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
    shown = [group for at, group in enumerate(groups) if at < most or is_nan(group.value)]  # a NaN is never left out
    rows = [(ranks_text(group.ranks), group.value) for group in shown]
    left = [rank for at, group in enumerate(groups) if at >= most and not is_nan(group.value) for rank in group.ranks]
    return [*rows, (compact(left), f"... {len(groups) - len(shown)} more values")] if left else rows
