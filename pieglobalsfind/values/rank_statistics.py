"""Statistics of one number over many ranks: minimum, maximum, mean, standard deviation, and the outliers.

Takes the text of each rank's value; gives figures, or None where it is not a number. Infinite values and NaNs are
counted apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.ranks.rankset import compact

NUMBER = re.compile(r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf|nan\(0x[0-9a-f]+\))$")
DISTINCT = 8  # values up to which a list says more than figures
# Beyond is who is farther from the median than so many times the median distance, which is 0.6745 of a normal
# distribution's standard deviation: five of these
FAR = 5 / 0.6745
BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 60
LONGEST_RANKS = 60  # characters


@dataclass(frozen=True)
class Statistics:
    """`lowest` and `highest` are ranks that have minimum and maximum, `beyond` those that stand apart, ascending.

    Infinities and what is not a number are `not_finite`, and in no other figure. `deviation` is that of all ranks
    (divided by their number).
    """

    count: int
    minimum: float
    maximum: float
    mean: float
    deviation: float
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    beyond: tuple[int, ...]
    not_finite: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """`min 0 (rank 3), max 9 (rank 5), mean 4.1, standard deviation 2; outliers: rank 5`."""
        text = (
            f"min {self.minimum:.6g} ({of(self.lowest)}), max {self.maximum:.6g} ({of(self.highest)}), "
            f"mean {self.mean:.6g}, standard deviation {self.deviation:.6g}"
        )
        text += f"; outliers: {of(self.beyond)}" if self.beyond else ""
        return text + (f"; not finite: {of(self.not_finite)}" if self.not_finite else "")


def of(ranks: tuple[int, ...]) -> str:
    """Return ranks as text, or their number if they are too many."""
    text = compact(ranks)
    if len(text) > LONGEST_RANKS:
        return f"{len(ranks)} ranks"
    return f"rank{'' if len(ranks) == 1 else 's'} {text}"


def number_of(text: str) -> Optional[float]:
    """The number that a value's text is, None if it is none."""
    if not NUMBER.match(text):
        return None
    return math.nan if "nan" in text else float(text)


def statistics_of(texts: Mapping[int, str]) -> Optional[Statistics]:
    """By rank. None where a value is not a number, or none is finite."""
    numbers: dict[int, float] = {}
    for rank, text in texts.items():
        number = number_of(text)
        if number is None:
            return None
        numbers[rank] = number
    finite = {rank: number for rank, number in numbers.items() if math.isfinite(number)}
    if not finite:
        return None
    low, high = min(finite.values()), max(finite.values())
    scale = max(abs(low), abs(high)) or 1.0  # sums of the largest numbers would be infinite
    mean = math.fsum(number / scale for number in finite.values()) / len(finite)
    square = math.fsum((number / scale - mean) ** 2 for number in finite.values()) / len(finite)
    return Statistics(
        len(numbers),
        low,
        high,
        mean * scale,
        math.sqrt(square) * scale,
        tuple(sorted(rank for rank, number in finite.items() if number == low)),
        tuple(sorted(rank for rank, number in finite.items() if number == high)),
        beyond(finite),
        tuple(sorted(numbers.keys() - finite.keys())),
    )


def beyond(finite: Mapping[int, float]) -> tuple[int, ...]:
    """The ranks that stand apart; where more than half have one number, those that have another."""
    from statistics import median  # late: it takes longer to import than the rest of a small command

    middle = median(finite.values())
    distances = {rank: abs(number - middle) for rank, number in finite.items()}
    usual = median(distances.values())
    return tuple(sorted(rank for rank, distance in distances.items() if distance > FAR * usual))


def sparkline(texts: Iterable[str]) -> str:
    """A bar for each rank, in order, or for a few that stand together their highest; `x` for what is not finite."""
    numbers = [number_of(text) for text in texts]
    finite = [number for number in numbers if number is not None and math.isfinite(number)]
    if not finite or None in numbers:
        return ""
    low, high = min(finite), max(finite)
    heights = [number for number in numbers if number is not None]
    step = -(-len(heights) // MOST_BARS)
    return "".join(bar(heights[at : at + step], low, high) for at in range(0, len(heights), step))


def bar(numbers: list[float], low: float, high: float) -> str:
    """Return one block of a sparkline."""
    if not all(map(math.isfinite, numbers)):
        return "x"
    span = high / 2 - low / 2  # halves, as the whole may be infinite
    share = (max(numbers) / 2 - low / 2) / span if span else 0.0
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
