"""Ranges of addresses, each from its start to before its end: merged, subtracted, intersected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

Range = tuple[int, int]  # start, end


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ascending, without overlaps; what touches is one."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return tuple(joined)


def without(start: int, end: int, others: Sequence[Range]) -> tuple[Range, ...]:
    """The parts of [start, end) that lie in none of other ascending ranges."""
    gaps, at = [], start
    for low, high in islice(others, max(bisect_right(others, (start, 1 << 64)) - 1, 0), None):
        if low >= end:
            break
        if at < low:
            gaps.append((at, low))
        at = max(at, high)
    return (*gaps, (at, end)) if at < end else tuple(gaps)


def intersected(ranges: Sequence[Range], allowed: Sequence[Range]) -> tuple[Range, ...]:
    """The parts of ascending ranges that lie in other ascending ones."""
    parts, at = [], 0
    for start, end in ranges:
        while at < len(allowed) and allowed[at][1] <= start:
            at += 1
        for low, high in allowed[at:]:
            if low >= end:
                break
            parts.append((max(start, low), min(end, high)))
    return tuple(parts)
