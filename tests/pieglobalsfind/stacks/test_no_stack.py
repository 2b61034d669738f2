"""Why a rank has no stack to look at."""

from __future__ import annotations

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, RUNNING, STARTING, Absent, Evidence, Rank
from pieglobalsfind.stacks.no_stack import check_is_here


def rank(state: str, process: int = -1, moves: int = 0) -> Rank:
    unknown = (Absent("unknown"),) * 5
    evidence = Evidence("registry", "test")
    return Rank(3, state, 0, 0, *unknown, None, Absent("unknown"), (), evidence, process=process, moves=moves)


@pytest.mark.parametrize(
    "gone, sentence",
    [
        (rank(STARTING), "rank 3 is still being made: continue until it runs"),
        (rank(STARTING, moves=2), "rank 3 is on its way to this process: continue until it has arrived"),
        (rank(EXITED), "rank 3 has exited: its globals are still there: rank print EXPR 3"),
        (rank(MIGRATED_OUT), "rank 3 has migrated to another process: attach to that one"),
        (rank(MIGRATED_OUT, process=1, moves=1), "rank 3 has migrated to process 1 of the job: attach to that one"),
    ],
)
def test_it_is_said_where_a_rank_is(gone: Rank, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_is_here(gone)
    assert str(raised.value) == sentence


def test_a_rank_that_is_here_has_a_stack() -> None:
    check_is_here(rank(RUNNING, moves=4))
