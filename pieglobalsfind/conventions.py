"""What the names of MPI's standard stand for in a runtime's calls: the values in its `mpi.h`.

Takes the name of a runtime as its rank table has it; gives values, None where they are not known.
"""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.facts import dataclass
from pieglobalsfind.model import RankTable


@dataclass(frozen=True)
class Convention:
    """`world` is MPI_COMM_WORLD, `own` MPI_COMM_SELF, `no_process` MPI_PROC_NULL."""

    world: int
    own: int
    any_source: int
    any_tag: int
    no_process: int


AMPI = Convention(1_000_000, 1_000_001, -1, 1_073_741_825, -2)  # ampi.h of Charm++ 7 and 8


def convention_of(table: RankTable) -> Optional[Convention]:
    """The convention of the runtime whose ranks these are."""
    return AMPI if table.runtime == "AMPI" else None


def members_of_world(table: RankTable) -> dict[int, tuple[int, ...]]:
    """The members of MPI_COMM_WORLD by the number that calls have for it, where that is known."""
    known = convention_of(table)
    return {} if known is None else {known.world: tuple(range(table.rank_count))}
