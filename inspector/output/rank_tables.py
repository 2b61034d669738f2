"""Ranks and the memory that they have, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from pieglobalsfind.debugger.wording import element_text, state_word, waiting_text
from pieglobalsfind.model import Absent, Rank, Waiting

from ..analysis.payload import CATEGORIES
from ..analysis.rank_memory import Holding
from ..terminal.text import byte_count, harmless, of_ranks
from .adaptive_table import Listing
from .table_cells import (
    MOST_RANK_ROWS,
    by_cells,
    has_records,
    heading,
    print_sizes,
    range_text,
    ranks_cell,
    ranks_text,
    size_text,
)


def print_ranks(held: Sequence[Holding], console: Console) -> None:
    """Ranks of the same state in one row; what differs from rank to rank as its range."""
    published = all(holding.rank.evidence.tier == "registry" for holding in held)
    how = "state as the runtime publishes it" if published else "state as far as it can be found"
    tiers = {holding.rank.evidence.tier for holding in held}
    heading(console, "Ranks", f"found by {tiers.pop()}, {how}" if len(tiers) == 1 else how)
    numbers = {holding.rank.rank: holding for holding in held}
    rows = by_cells((holding.rank.rank, rank_row(holding.rank, waiting_text)) for holding in held)
    if len(rows) > MOST_RANK_ROWS and not has_records(console):
        rows = by_cells((holding.rank.rank, rank_row(holding.rank, lambda waiting: waiting.call)) for holding in held)
    is_mixed = len({holding.rank.evidence.tier for holding in held}) > 1
    tier = ("found by",) if is_mixed else ()
    table = Listing(("ranks", "state", "waits in", "element", *tier, "switches", "memory"))
    for cells, ranks in rows.items():
        same = [numbers[rank] for rank in ranks]
        switches = range_text([holding.switches for holding in same], str)
        memory = range_text([holding.total for holding in same], byte_count)
        table.add((ranks_cell(ranks, console), *(cells if is_mixed else cells[:-1]), switches, memory))
    console.print(table)
    for (note,), ranks in by_cells(
        (holding.rank.rank, (note,)) for holding in held for note in holding.unknown
    ).items():
        console.print(Text(f"  {of_ranks(ranks_text(ranks))}: {harmless(note)}", style="dim"))


def print_memory(held: Sequence[Holding], console: Console) -> None:
    """Bytes by category; ranks that hold the same in one row."""
    heading(console, "Memory", "of each rank's image, by category")
    images = [(holding.rank.rank, holding.memory) for holding in held if not isinstance(holding.memory, Absent)]
    shown = [name for name in CATEGORIES if any(sizes[name] != 0 for _, sizes in images)]
    rows = [(rank, tuple(size_text(sizes[name]) for name in shown)) for rank, sizes in images]
    print_sizes([name.replace("_", " ") for name in shown], rows, console)


def rank_row(rank: Rank, wording: Callable[[Waiting], str]) -> tuple[str, ...]:
    """Return a rank's cells."""
    waits = harmless(wording(rank.waiting)) if rank.waiting is not None else "-"
    return state_word(rank), waits, element_text(rank), rank.evidence.tier
