"""Makes text from a target harmless: whatever a terminal or a reader could take for more than letters is spelled out.

Takes any string that was read from a target, its files or its debug information; never shortens silently.
"""

from __future__ import annotations

from pieglobalsfind.shell.escape import harmless as harmless

DIFFERENCE = " (differs from rank "


def shortened(value: str, most: int) -> str:
    """A variable's value, cut at `most` characters; a note that says where it differs from a similar one is kept."""
    if len(value) <= most:
        return value
    shown, mark, where = value.rpartition(DIFFERENCE)
    return f"{shown[:most]}...{mark}{where}" if mark and len(where) <= most else value[:most] + "..."


def byte_count(size: int) -> str:
    """`1.2 MB`; exact below a kilobyte."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{size} B"


def declared(file: str, line: int) -> str:
    """Where a variable is: `heat.c:14`; what compilers make by themselves, as of Fortran's types, is nowhere."""
    return f"{file.rpartition('/')[2]}:{line}" if file else "no line"


def of_ranks(ranks: str) -> str:
    """`rank 4`, `ranks 5-7`: a set of ranks, as it is written, with its noun."""
    return f"rank{'' if ranks.isdecimal() else 's'} {ranks}"
