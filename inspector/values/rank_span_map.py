"""One value for each of many ranks, kept as spans of ranks.

Takes spans and values; gives the ranks of each value. It costs as much as what was entered, not as the ranks that the
spans cover: a file of two kilobytes can name millions of ranks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from pieglobalsfind.ranks.rankset import Span


class RankValues:
    """A value for each rank; what is entered later replaces what was there."""

    def __init__(self) -> None:
        # Ascending and disjoint: span number i is from _firsts[i] to _lasts[i], both inclusive.
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._values: list[str] = []

    def enter(self, span: Span, value: str) -> None:
        """Give the ranks of `span` a value."""
        low, high = bisect_left(self._lasts, span.first), bisect_right(self._firsts, span.last)
        replaced = list(zip(self._firsts[low:high], self._lasts[low:high], self._values[low:high]))
        parts = [(first, span.first - 1, old) for first, _, old in replaced[:1] if first < span.first]
        parts.append((span.first, span.last, value))
        parts += [(span.last + 1, last, old) for _, last, old in replaced[-1:] if last > span.last]
        self._firsts[low:high] = [first for first, _, _ in parts]
        self._lasts[low:high] = [last for _, last, _ in parts]
        self._values[low:high] = [entered for _, _, entered in parts]

    def __len__(self) -> int:
        """How many spans it keeps."""
        return len(self._firsts)

    def groups(self) -> list[tuple[str, list[Span]]]:
        """Each value with its ranks; the value of most ranks first."""
        spans: dict[str, list[Span]] = {}
        for first, last, value in zip(self._firsts, self._lasts, self._values):
            same = spans.setdefault(value, [])
            if same and same[-1].last == first - 1:
                same[-1] = Span(same[-1].first, last)
            else:
                same.append(Span(first, last))
        return sorted(spans.items(), key=lambda group: (-count(group[1]), group[1][0].first))


def count(spans: Iterable[Span]) -> int:
    """How many ranks spans have that do not overlap."""
    return sum(span.last - span.first + 1 for span in spans)


def within(span: Span, allowed: list[Span], firsts: list[int]) -> Iterator[Span]:
    """The parts of a span that ascending spans cover; `firsts` are the first ranks of those."""
    for part in allowed[max(bisect_right(firsts, span.first) - 1, 0) : bisect_right(firsts, span.last)]:
        first, last = max(part.first, span.first), min(part.last, span.last)
        if first <= last:
            yield Span(first, last)
