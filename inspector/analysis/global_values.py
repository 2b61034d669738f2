"""Hold the values of a job's globals: each value, its ranks, and whether the variable has to be private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.model import Absent
from pieglobalsfind.values.rank_statistics import DISTINCT, Statistics, statistics_of

# What the ranks' values say of a variable
DIFFERS = "differs"  # it has to be private
EQUAL = "equal everywhere"  # written, with the same bytes on all ranks
# written, and its pointers lead to the same place of each rank's own image: it has to be private, and what C and C++
# have after them is not compared
ADDRESSED = "equal but for addresses"
INITIAL = "initial value"  # what the file holds, on all ranks: if it was written, then with that value
SHARED = "shared"  # there is one for several ranks, whatever they write
UNKNOWN = "unknown"
UNREAD = b"unread"  # in place of a digest, which is longer
VERDICTS = (DIFFERS, ADDRESSED, EQUAL, INITIAL, SHARED, UNKNOWN)


@dataclass(frozen=True)
class Group:
    """The ranks, ascending, on which a variable has one value."""

    ranks: tuple[int, ...]
    value: str
    digest: bytes = b""  # of the whole value, where the text leaves something out

    @property
    def is_known(self) -> bool:
        """Whether the value was read; else it is the reason why not."""
        return self.digest != UNREAD


@dataclass(frozen=True)
class GlobalValues:
    """A variable and its values; `size` in bytes, `object` the path of the file that declares it.

    `verdict` is one of VERDICTS. `needless`: bytes that each rank has of its own, though they are the same on all.
    `uncompared`: what of equal values was not compared, "" if all was.
    """

    name: str
    object: str
    file: str
    line: int
    type: str
    size: int
    storage: str
    groups: tuple[Group, ...]
    verdict: str
    needless: int = 0
    place: int = 0  # vaddr, or offset in the TLS block
    uncompared: str = ""

    @property
    def differs(self) -> bool:
        """Return whether ranks have different values."""
        return sum(group.is_known for group in self.groups) > 1

    @property
    def statistics(self) -> Optional[Statistics]:
        """Of a number that has more values than a list is good for, else None."""
        if len(self.groups) <= DISTINCT or not all(group.is_known for group in self.groups):
            return None
        return statistics_of(self.by_rank)

    @property
    def by_rank(self) -> dict[int, str]:
        """Each rank's value, ascending."""
        return dict(sorted((rank, group.value) for group in self.groups for rank in group.ranks))

    @property
    def is_known(self) -> bool:
        """Whether any rank's value was read."""
        return any(group.is_known for group in self.groups)


@dataclass(frozen=True)
class Globals:
    """The variables of all copied objects; `absent` says which objects could not be read.

    `apart`: how many of the runtime's own and the C library's are left out.
    """

    values: tuple[GlobalValues, ...]
    absent: tuple[Absent, ...]
    apart: int = 0

    @property
    def needless(self) -> int:
        """Bytes per rank that need not be private as far as this moment tells: what overlaps counts once."""
        places: dict[tuple[str, int], int] = {}
        for value in self.values:
            places[value.object, value.place] = max(value.needless, places.get((value.object, value.place), 0))
        return sum(places.values())


def differing(job_globals: Globals) -> Iterator[GlobalValues]:
    """Those that ranks hold different values of."""
    return (value for value in job_globals.values if value.differs)


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
