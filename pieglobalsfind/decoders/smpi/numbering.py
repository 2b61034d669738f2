"""Rank numbers in a process that may hold several instances of SMPI, and actors that are no MPI ranks.

Takes actors with their identities; gives each a number of its own, and a sentence where that number is not its rank in
MPI_COMM_WORLD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.smpi.actors import Actor
from pieglobalsfind.decoders.smpi.identity import SmpiRank

SEVERAL = "several MPI jobs are in this process, their ranks are numbered on: {}"
ACTORS = "these are actors of S4U, not MPI ranks: they are numbered by their pids, and have no globals of their own"
OTHERS = "{} of the process's actors are not MPI ranks, and are not listed"
TWICE = "two actors say that they are rank {} of {}: SimGrid's properties are damaged, or the job is changing"


@dataclass(frozen=True)
class Numbers:
    """By number, the index of the actor; `first` is by instance the number of its rank 0, `sizes` its ranks."""

    actors: dict[int, int]
    first: dict[str, int]
    sizes: dict[str, int]
    warnings: tuple[str, ...]

    @property
    def are_ranks(self) -> bool:
        """Return whether the actors are MPI ranks."""
        return bool(self.first)


def number(actors: Sequence[Actor], identities: Sequence[Optional[SmpiRank]]) -> Numbers:
    """Ranks in ascending order; of a process without any rank, its actors."""
    ranks = [(smpi_rank, index) for index, smpi_rank in enumerate(identities) if smpi_rank is not None]
    if not ranks:
        return Numbers({actor.number: index for index, actor in enumerate(actors)}, {}, {}, (ACTORS,) if actors else ())
    sizes: dict[str, int] = {}
    for smpi_rank, _ in ranks:
        sizes[smpi_rank.instance] = max(sizes.get(smpi_rank.instance, 0), smpi_rank.rank + 1)
    first, total = dict[str, int](), 0
    for name, size in sizes.items():
        first[name] = total
        total += size
    numbered: dict[int, int] = {}
    warnings = []
    for smpi_rank, index in ranks:
        place = first[smpi_rank.instance] + smpi_rank.rank
        if place in numbered:
            warnings.append(TWICE.format(smpi_rank.rank, smpi_rank.instance))
        numbered.setdefault(place, index)
    if len(sizes) > 1:
        parts = (f"{name} has {first[name]}-{first[name] + size - 1}" for name, size in sizes.items())
        warnings.append(SEVERAL.format(", ".join(parts)))
    if len(ranks) < len(actors):
        warnings.append(OTHERS.format(len(actors) - len(ranks)))
    return Numbers(dict(sorted(numbered.items())), first, sizes, tuple(dict.fromkeys(warnings)))
