"""What would migrate with a rank, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..analysis.payload import CATEGORIES, Payload
from ..terminal.text import byte_count, harmless, of_ranks
from .adaptive_table import Listing
from .table_cells import by_cells, heading, print_sizes, ranks_cell, ranks_text

if TYPE_CHECKING:  # what one part alone needs is loaded when it is printed
    from ..analysis.migration_cost import Network, WhatIf


def print_payload(payload: Sequence[Payload], console: Console) -> None:
    """Print the payload."""
    heading(console, "Payload", "what would move with a rank, by category")
    table = Listing(("ranks", "total", "of which"), (1,))
    for cells, numbers in by_cells((size.rank, payload_row(size)) for size in payload).items():
        table.add((ranks_cell(numbers, console), *cells))
    console.print(table)
    for (note,), numbers in by_cells((size.rank, (note,)) for size in payload for note in size.notes).items():
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
