"""Ranges of addresses, each from its start to before its end: found, merged, subtracted, intersected."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Optional, TypeVar

Range = tuple[int, int]  # start, end
Ranged = TypeVar("Ranged", bound="tuple[Any, ...]")  # start, end and whatever belongs to them


def place_of(ranges: Sequence[Ranged], address: int) -> int:
    """Which of ascending ranges is the last one that does not begin after an address; -1 if all do."""
    return bisect_left(ranges, (address + 1,)) - 1


def range_at(ranges: Sequence[Ranged], address: int) -> Optional[Ranged]:
    """The one of ascending ranges that holds an address."""
    at = place_of(ranges, address)
    return ranges[at] if at >= 0 and address < ranges[at][1] else None


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
    for low, high in islice(others, max(place_of(others, start), 0), None):
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
