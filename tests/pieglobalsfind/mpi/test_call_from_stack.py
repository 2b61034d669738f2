"""Which functions on a stack are MPI calls, by the names that MPI libraries give them."""

from __future__ import annotations

from typing import Optional

import pytest

from pieglobalsfind.mpi.call_from_stack import MPI_CALL


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("MPI_Recv", "MPI_Recv"),
        ("PMPI_Recv", "MPI_Recv"),
        ("AMPI_Recv", "MPI_Recv"),  # Charm++'s machine layer `mpi`
        ("APMPI_Barrier", "MPI_Barrier"),
        ("AMPI_Main", None),  # the program's own main
        ("AMPI_Main_noargs", None),
        ("AMPI_Rank_Setup", None),
        ("AMPI_Migrate", None),
        ("AMPI_threadstart", None),
        ("MPI_", None),
        ("MPIR_Recv", None),
        ("my_MPI_Recv", None),
    ],
)
def test_names_of_calls(function: str, call: Optional[str]) -> None:
    match = MPI_CALL.fullmatch(function)
    assert (match[1] if match else None) == call
