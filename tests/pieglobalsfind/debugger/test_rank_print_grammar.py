"""The arguments of `rank print`: sets before and after expressions, told from the expressions themselves."""

from __future__ import annotations

import pytest

from pieglobalsfind.debugger.commands.rank_print import parse
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks.rankset import ALL, RankSet, recognize


def ranks(text: str) -> RankSet:
    found = recognize(text) if text else ALL
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text, chosen, expression",
    [
        ("counter", "", "counter"),
        ("counter 3", "3", "counter"),
        ("counter 0-3,7", "0-3,7", "counter"),
        ("counter all", "all", "counter"),
        ("3 counter", "3", "counter"),
        ("0-3 counter", "0-3", "counter"),
        ("running counter", "running", "counter"),
        ("/solve/ counter", "/solve/", "counter"),
        ("counter /solve/", "/solve/", "counter"),
        ("3 *pointer", "3", "*pointer"),
        ("3 &counter", "3", "&counter"),
        ("3 -counter", "3", "-counter"),
        ("3 !counter", "3", "!counter"),
        ("3 (counter)", "3", "(counter)"),
        ('3 "text"', "3", '"text"'),
        ("3 ::counter", "3", "::counter"),
        ("3 ++counter", "3", "++counter"),
        ("all *a[1].b", "all", "*a[1].b"),
        ("3 * counter", "", "3 * counter"),
        ("3 + counter", "", "3 + counter"),
        ("3 - 1", "", "3 - 1"),
        ("3 == counter", "", "3 == counter"),
        ("3 != counter", "", "3 != counter"),
        ("counter + 3", "", "counter + 3"),
        ("counter == 3", "", "counter == 3"),
        ("counter > 3 2", "2", "counter > 3"),
        ("sizeof 3", "", "sizeof 3"),
        ("a and 3", "", "a and 3"),
        ("x .eq. 3", "", "x .eq. 3"),
        ("f(1, 2) 3", "3", "f(1, 2)"),
        ("a[1] 3", "3", "a[1]"),
        ("'file.c'::x 2", "2", "'file.c'::x"),
        ("3", "", "3"),
        ("all", "", "all"),
        ("3 4", "4", "3"),
        ("3 -- *pointer", "3", "*pointer"),
        ("-- 3 *pointer", "", "3 *pointer"),
        ("-- counter", "", "counter"),
        ("all + 1", "", "all + 1"),
        ("x", "", "x"),
    ],
)
def test_sets_and_expressions(text: str, chosen: str, expression: str) -> None:
    request = parse(text)
    assert (request.ranks, request.expression, request.form) == (ranks(chosen), expression, "")


def test_several_numbers_follow() -> None:
    assert parse("counter 1 5 7").ranks == ranks("1") + ranks("5") + ranks("7")


@pytest.mark.parametrize("text", ["/x counter 3", "  /x   counter 3 ", "/x 3 counter"])
def test_formats(text: str) -> None:
    request = parse(text)
    assert (request.form, request.expression, request.ranks) == ("/x", "counter", ranks("3"))


@pytest.mark.parametrize("text", ["", "  ", "/x", "3 --", "--"])
def test_no_expression(text: str) -> None:
    with pytest.raises(UsageError, match="no expression to print is given"):
        parse(text)
