"""Compute how far a sampled share of time may be off, with 95 % confidence."""

from __future__ import annotations

from math import exp, lgamma, log, sqrt

CONFIDENCE = 0.95
DEVIATIONS = 1.96  # standard deviations within which a normal distribution has 95 %


def worst_error(looks: int) -> float:
    """Return how far a share may be off at most, 0 to 1: that of a half, the worst. 0 without looks."""
    return min(DEVIATIONS * 0.5 / sqrt(looks), 1.0) if looks else 0.0


def surely_exceeds(seen: int, looks: int, share: float, compared: int) -> bool:
    """Return whether what was seen in `seen` of `looks` has more than a share, 0 to 1, of the time.

    The exact binomial test. `compared`: how many are tested at once, among which chance finds the largest (Bonferroni).
    """
    if share >= 1 or not seen:
        return False
    return _at_least(seen, looks, share) < (1 - CONFIDENCE) / compared


def _at_least(seen: int, looks: int, share: float) -> float:
    """The probability of `seen` or more of so many looks, each with the probability `share`."""
    total = 0.0
    for count in range(seen, looks + 1):
        ways = lgamma(looks + 1) - lgamma(count + 1) - lgamma(looks - count + 1)
        total += exp(ways + count * log(share) + (looks - count) * log(1 - share))
    return total
