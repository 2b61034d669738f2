"""The pointer check as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pieglobalsfind.model import Absent

from ..terminal.text import harmless, of_ranks
from .adaptive_table import Listing
from .table_cells import WIDE, has_records, heading, ranks_cell, ranks_text

if TYPE_CHECKING:  # what one part alone needs is loaded when it is printed
    from ..pointers.findings import Audit, PointerFinding

MOST_FINDINGS = 40


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
