"""What a rank waits in, as every command says it."""

from __future__ import annotations

import pytest

from pieglobalsfind.debugger.wording import waiting_text
from pieglobalsfind.model import Waiting


@pytest.mark.parametrize(
    ("call", "peer", "tag", "said"),
    [
        ("MPI_Recv", 3, 7, "MPI_Recv from 3, tag 7"),
        ("MPI_Recv", -1, -1, "MPI_Recv from any rank, any tag"),
        ("MPI_Ssend", 1, 0, "MPI_Ssend to 1, tag 0"),
        ("MPI_Barrier", -2, -2, "MPI_Barrier"),
        ("MPI_Bcast", 3, -2, "MPI_Bcast"),
    ],
)
def test_a_call_that_waits(call: str, peer: int, tag: int, said: str) -> None:
    assert waiting_text(Waiting(call, peer, tag, 0, in_world=True)) == said


def test_a_peer_of_a_communicator_whose_members_are_not_known() -> None:
    assert waiting_text(Waiting("MPI_Recv", 3, 7, 12)) == "MPI_Recv from 3 of communicator 12, tag 7"
