"""What the tables of all parts share: headings, cells of ranks and sizes, and rows that several ranks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Optional, Union

from rich.console import Console
from rich.text import Text

from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact

from ..terminal.text import byte_count
from .adaptive_table import Listing

LONGEST_RANKS = 30
MOST_RANK_ROWS = 24
WIDE = 100  # columns from which on addresses are not folded


def heading(console: Console, title: str, how: str) -> None:
    """Print a heading with its subtitle."""
    console.print()
    console.print(Text.assemble((f"{title}: ", "bold cyan"), (how, "dim")))


def ranks_text(ranks: Iterable[int]) -> str:
    """`0-3,7`; of many ranges the first few and how many ranks there are: `0,3,20,22,... (471 ranks)`."""
    numbers = list(ranks)
    text = compact(numbers)
    if len(text) <= LONGEST_RANKS:
        return text
    return f"{text[:LONGEST_RANKS].rpartition(',')[0]},... ({len(numbers)} ranks)"


def ranks_cell(ranks: Iterable[int], console: Console) -> str:
    """A cell of a table: all ranks where a row is a record for other programs, else as `ranks_text` has it."""
    return compact(ranks) if has_records(console) else ranks_text(ranks)


def range_text(values: Sequence[Union[int, Absent]], wording: Callable[[int], str]) -> str:
    """`7`, or `3 to 12` of several; `?` if one of them can't be had."""
    numbers = [value for value in values if not isinstance(value, Absent)]
    if len(numbers) < len(values) or not numbers:
        return "?"
    low, high = wording(min(numbers)), wording(max(numbers))
    return low if low == high else f"{low} to {high}"


def print_sizes(names: Sequence[str], rows: Iterable[tuple[int, tuple[str, ...]]], console: Console) -> None:
    """A column for each name; if the terminal is too narrow, one folded column for all."""
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
    ranks_by_cells: dict[tuple[str, ...], list[int]] = {}
    for rank, cells in rows:
        ranks_by_cells.setdefault(cells, []).append(rank)
    return ranks_by_cells


def has_records(console: Console) -> bool:
    """Whether every record is a line of its own."""
    return bool(getattr(console, "has_records", False))


def only_tables(console: Console) -> bool:
    """Whether a program reads it, which wants every value."""
    return bool(getattr(console, "only_tables", False))
