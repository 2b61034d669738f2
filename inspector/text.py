"""Makes text from a target harmless: whatever a terminal or a reader could take for more than letters is spelled out.

Takes any string that was read from a target, its files or its debug information; never shortens silently.
"""

from __future__ import annotations

import unicodedata

_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # control, format (direction marks), surrogates, unassigned


def harmless(text: str, most: int = 400) -> str:
    """`text` with control and invisible characters as `\\ooo` or `\\uXXXX`, cut at `most` characters with "..."."""
    shown = "".join(one if unicodedata.category(one) not in _UNSAFE else spelled(one) for one in text[:most])
    return shown + "..." if len(text) > most else shown


def spelled(character: str) -> str:
    code = ord(character)
    return f"\\{code:03o}" if code < 0x100 else f"\\u{code:04x}"


def rank_set(ranks: list[int]) -> str:
    """Ranks as people write them: `0-3,7`."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def byte_count(size: int) -> str:
    """`1.2 MB`; exact below a kilobyte."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{size} B"
