"""Sets of ranks: what people write, and what it means for a table."""

from __future__ import annotations

import itertools
import re

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import BLOCKED, RUNNING, Absent, Evidence, Rank, RankTable
from pieglobalsfind.ranks import rankset

EVIDENCE = Evidence("registry", "test")
UNKNOWN = Absent("unknown")


def rank(number: int, state: str) -> Rank:
    return Rank(
        number,
        state,
        0,
        0,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        None,
        UNKNOWN,
        placements=(),
        evidence=EVIDENCE,
    )


def table(*states: str, rank_count: int = 0, first: int = 0) -> RankTable:
    ranks = tuple(rank(number, state) for number, state in enumerate(states, first))
    return RankTable("pie", "", rank_count or len(ranks), (), ranks, EVIDENCE, process_id=1, generation=2)


TABLE = table(BLOCKED, RUNNING, BLOCKED, BLOCKED)
NAMES = {0: "solve", 1: "exchange", 2: "solve_fast", 3: ""}


def chosen(text: str) -> tuple[int, ...]:
    return rankset.select(rankset.parse(text), TABLE, NAMES.__getitem__)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("3", (3,)),
        ("0-2", (0, 1, 2)),
        ("3,0-1,3", (0, 1, 3)),
        ("all", (0, 1, 2, 3)),
        ("running", (1,)),
        ("blocked", (0, 2, 3)),
        ("1,blocked", (0, 1, 2, 3)),
        ("exited", ()),
        ("/solve/", (0, 2)),
        ("/^solve$/", (0,)),
        ("/e/", (0, 1, 2)),
    ],
)
def test_what_is_written_is_what_is_meant(text: str, expected: tuple[int, ...]) -> None:
    assert chosen(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "2-1", "1,,2", "0x1", "1 2", "12345678901", "all-1", "//", "+1"])
def test_what_is_no_set(text: str) -> None:
    assert rankset.recognize(text) is None
    with pytest.raises(UsageError, match="is not a set of ranks"):
        rankset.parse(text)


def test_a_wrong_pattern_is_told() -> None:
    with pytest.raises(UsageError, match="is not a regular expression"):
        rankset.recognize("/(/")


@pytest.mark.parametrize("text, missing", [("4", 4), ("2-9", 4), ("0-4000000000", 4)])
def test_ranks_that_are_not_there(text: str, missing: int) -> None:
    with pytest.raises(UsageError, match=re.escape(f"there is no rank {missing}: this process has 0-3")):
        chosen(text)


def test_ranks_of_another_process() -> None:
    here = table(BLOCKED, BLOCKED, rank_count=8, first=4)
    with pytest.raises(UsageError, match="rank 2 lives in another process of the job: this one has 4-5"):
        rankset.select(rankset.parse("2-5"), here, str)


def test_a_process_s_part_of_a_set_for_the_job() -> None:
    """What others have is not a fault; whether anybody has it is asked once, of all."""
    here = table(BLOCKED, BLOCKED, rank_count=8, first=4)
    assert rankset.among(rankset.parse("2-4,99"), here, str) == (4,)
    assert rankset.among(rankset.parse("0-4000000000"), here, str) == (4, 5)
    with pytest.raises(UsageError, match="there is no rank 99: these processes have 4-5"):
        rankset.check(rankset.parse("4,99"), here, several=True)


def test_compact_is_read_back() -> None:
    for length in range(7):
        for ranks in itertools.combinations(range(6), length):
            text = rankset.compact(reversed(ranks))
            if not ranks:
                assert text == ""
                continue
            spans = rankset.parse(text)
            found = [
                one for span in spans if isinstance(span, rankset.Span) for one in range(span.first, span.last + 1)
            ]
            assert found == list(ranks)


def test_compact_is_short() -> None:
    assert rankset.compact(range(100_000)) == "0-99999"
    assert rankset.compact([0, 2, 3, 4, 7]) == "0,2-4,7"
