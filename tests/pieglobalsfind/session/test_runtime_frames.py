"""Which of a stack's functions the program has called, where the program and its MPI are one file."""

from __future__ import annotations

import pytest

from pieglobalsfind.session.runtime_frames import is_fortran_name, program_calls

START = ("startTCharmThread(TCharmInitMsg*)", "AMPI_threadstart")
INSIDE = ("IReq::wait(ampiParent*, MPI_Status*)", "ampiParent::block()", "CthResume", "swapJcontext")


@pytest.mark.parametrize(
    ("own", "call"),
    [
        (("AMPI_Main", "exchange"), ("MPI_Recv",)),
        (("AMPI_Main",), ("PMPI_Allreduce", "MPI_Waitall")),
        (("AMPI_Main",), ("AMPI_Barrier",)),
        (("mpi_main", "halo"), ("mpi_recv_", "PMPI_Recv")),
    ],
)
def test_the_outermost_call_of_mpi_is_the_program_s(own: tuple[str, ...], call: tuple[str, ...]) -> None:
    stack = (*START, *own, *call, *INSIDE)
    assert stack[: program_calls(stack)] == (*START, *own, call[0])


@pytest.mark.parametrize("own", [("AMPI_Main", "sleep"), ("mpi_main_", "measure"), ("AMPI_Main", "AMPI_Migrate"), ()])
def test_where_no_call_is_there_is_none(own: tuple[str, ...]) -> None:
    assert program_calls((*START, *own, *INSIDE)) == 0


@pytest.mark.parametrize(
    ("function", "inner", "is_name"),
    [
        ("mpi_recv_", "PMPI_Recv", True),
        ("mpi_recv_", "MPI_Recv(void*, int)", True),
        ("mpi_recv_", "MPI_Send", False),
        ("exchange", "PMPI_Recv", False),
        ("mpi_recv_", "", False),
    ],
)
def test_fortran_s_names_are_the_calls_that_they_make(function: str, inner: str, is_name: bool) -> None:
    assert is_fortran_name(function, inner) == is_name
