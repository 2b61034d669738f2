"""What the names of MPI's standard stand for in a runtime's calls: the values in its `mpi.h`.

Takes the name of a runtime as its rank table has it; gives values, None where they are not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.model import RankTable


@dataclass(frozen=True)
class Convention:
    """`world` is MPI_COMM_WORLD, `own` MPI_COMM_SELF, `no_process` MPI_PROC_NULL.

    `numbers_ranks`: a rank of MPI_COMM_WORLD has that number for us, too. Tasks of Process-in-Process have numbers of
    their own, and what of them is which rank the MPI library's launcher decides.
    """

    world: int
    own: int
    any_source: int
    any_tag: int
    no_process: int
    numbers_ranks: bool = True


AMPI = Convention(1_000_000, 1_000_001, -1, 1_073_741_825, -2)  # ampi.h of Charm++ 7 and 8
MPICH = Convention(0x4400_0000, 0x4400_0001, -2, -1, -1, False)  # the common ABI of MPICH 3.1 and its kin
MPICH_LIBRARY = re.compile(r"libmpi(ch)?\.so\.12(\.|$)")


def convention_of(table: RankTable, library: str = "") -> Optional[Convention]:
    """The convention of the runtime whose ranks these are; of an MPI beside it by the `library` that has the call."""
    if table.runtime == "AMPI":
        return AMPI
    return MPICH if MPICH_LIBRARY.match(library.rpartition("/")[2]) else None


def members_of_world(table: RankTable) -> dict[int, tuple[int, ...]]:
    """The members of MPI_COMM_WORLD by the number that calls have for it, where that is known."""
    convention = convention_of(table)
    return {} if convention is None else {convention.world: tuple(range(table.rank_count))}
