"""A NaN is shown whatever else is left out."""

from __future__ import annotations

import pytest

from inspector.analysis.global_values import GlobalValues, Group
from inspector.output.global_tables import LONGEST_VALUE, MOST_GROUPS, is_nan, value_rows, with_nan
from pieglobalsfind.ranks.rankset import compact


@pytest.mark.parametrize("value", ["nan", "-nan(0x8000000000000)", "{1, 2, nan}", "{x = -nan, y = 0}", "NaN"])
def test_what_is_one(value: str) -> None:
    assert is_nan(value)


@pytest.mark.parametrize("value", ["<nan_count>", '"nan"', "banana", "nan_ok", "'nan'", "{nano = 1}", "0x7ff8nan"])
def test_what_is_none(value: str) -> None:
    assert not is_nan(value)


def test_the_rank_that_has_it_is_never_one_of_those_left_out() -> None:
    groups = tuple(Group((rank, rank + 100), f"{{{rank}.5, 0}}") for rank in range(20))
    numbers = tuple(Group((rank,), f"{rank}.5") for rank in range(20))
    odd = Group((77,), "{1, -nan(0x8000000000000)}")
    global_values = GlobalValues("residual", "a.so", "a.c", 1, "double [2]", 16, "static", (*groups, odd), "differs")
    rows = list(value_rows(global_values))
    assert ("77", odd.value) in rows and len(rows) == MOST_GROUPS + 1
    number = GlobalValues(
        "one", "a.so", "a.c", 1, "double", 8, "static", (*numbers, Group((77,), "nan(0x8)")), "differs"
    )
    ((_, figures),) = value_rows(number)
    assert figures.endswith("not finite: rank 77")
    assert rows[-1] == (compact([*range(5, 20), *range(105, 120)]), "... 15 more values")


def test_what_is_cut_says_so() -> None:
    whole = "{" + "1.5, " * 60 + "nan}"
    assert with_nan(whole, whole[:LONGEST_VALUE] + "...").endswith("... (nan is in the rest)")
    assert with_nan("{1.5}", "{1...") == "{1..."
