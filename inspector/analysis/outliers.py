"""Which ranks differ from the rest, and how remarkable that is: what few ranks differ in comes first.

Takes the values of variables, grouped by ranks; gives the ranks outside of the largest group, and an order. A variable
that has another value on every rank, as one that counts ranks, comes last.
"""

from __future__ import annotations

from collections.abc import Iterable

from .global_values import GlobalValues


def outliers(global_values: GlobalValues) -> tuple[int, ...]:
    """The ranks that don't have the value of most, ascending; () where no value is that of more than half of them."""
    groups = [group for group in global_values.groups if group.is_known]
    largest = max(groups, key=lambda group: len(group.ranks), default=None)
    if largest is None or 2 * len(largest.ranks) <= sum(len(group.ranks) for group in groups):
        return ()
    return tuple(sorted(rank for group in groups if group is not largest for rank in group.ranks))


def by_rarity(variables: Iterable[GlobalValues]) -> list[GlobalValues]:
    """First those in which fewest ranks differ, then those without a common value, by how many values they have."""

    def order(variable: GlobalValues) -> tuple[bool, int, int]:
        ranks = outliers(variable)
        return not ranks, len(ranks), len(variable.groups)

    return sorted(variables, key=order)
