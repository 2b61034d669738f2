"""Whose numbers the arguments of MPI calls are."""

from __future__ import annotations

from typing import Optional

import pytest

from pieglobalsfind.decoders.elf_scan import EVIDENCE
from pieglobalsfind.decoders.mpi_constants import AMPI, MPICH, Convention, convention_of, members_of_world
from pieglobalsfind.model import RankTable


def table(runtime: str) -> RankTable:
    return RankTable("pie", runtime, 3, (), (), EVIDENCE)


@pytest.mark.parametrize(
    ("runtime", "library", "expected"),
    [
        ("AMPI", "/home/me/prog", AMPI),
        ("PiP", "/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2", MPICH),
        ("PiP", "libmpi.so.12", MPICH),
        ("PiP", "/usr/lib/libmpi.so.40.30.4", None),
        ("PiP", "/usr/lib/libmpicxx.so.12", None),
        ("PiP", "", None),
    ],
)
def test_by_the_library_that_has_the_call(runtime: str, library: str, expected: Optional[Convention]) -> None:
    assert convention_of(table(runtime), library) is expected


def test_who_is_in_the_world() -> None:
    """Of AMPI all ranks; what of PiP's tasks is which rank is not known."""
    assert members_of_world(table("AMPI")) == {1_000_000: (0, 1, 2)}
    assert members_of_world(table("PiP")) == {}
