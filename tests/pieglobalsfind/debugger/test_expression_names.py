"""Which expressions only read variables, and the names in them."""

from __future__ import annotations

import pytest

from pieglobalsfind.debugger.expression_names import may_call, names, pieces, replaced

READ = {
    "a": "<a>",
    "a + b * 3": "<a> + <b> * 3",
    "a->b.c[i]": "<a>->b.c[<i>]",
    "space::a - -b": "<space::a> - -<b>",
    "*p@4": "*<p>@4",
    "(T) x": "(<T>) <x>",
    "a <= b && !c": "<a> <= <b> && !<c>",
    "a << 2 >> b": "<a> << 2 >> <b>",
    "a ? b : c": "<a> ? <b> : <c>",
    "1.5e+3 * a": "1.5e+3 * <a>",
    "sizeof(a)": "sizeof(<a>)",
    "(unsigned char) a": "(unsigned char) <a>",
    "f(a)": "<f>(<a>)",
    "(*f) (a)": "(*<f>) (<a>)",
    "a->f ()": "<a>->f ()",
    "a::b(c)": "<a::b>(<c>)",
    "$_rank + $2 - $$ * $$3": "<$_rank> + <$2> - <$$> * <$$3>",
}
CALLS = {"f(a)": True, "f (a)": True, "a.f(b)": True, "a[0](b)": True, "(T) (a)": True, "(T) a": False, "$f(a)": False}
REFUSED = (
    *("a = 1", "a += 1", "a <<= 1", "a >>= 1", "a |= b", "a++", "--a", "a--", "a, b = 3"),
    *("f(a = 1)", "$a = b", "$a++", "{int} a", "'f.c'::a", '"text"', "a::", "3", ""),
)


@pytest.mark.parametrize("expression", READ)
def test_names_are_replaced_and_nothing_else(expression: str) -> None:
    expression_pieces = pieces(expression)
    assert expression_pieces is not None
    assert replaced(expression_pieces, "<{}>".format) == READ[expression]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_may_do_more_is_refused(expression: str) -> None:
    assert pieces(expression) is None


def test_each_name_once_and_the_members() -> None:
    expression_pieces = pieces("a.b + a->c - d")
    assert expression_pieces is not None
    assert names(expression_pieces) == ("a", "d")
    assert {piece.member for piece in expression_pieces} == {"", "b", "c"}


@pytest.mark.parametrize("expression", CALLS)
def test_what_may_call_is_known(expression: str) -> None:
    expression_pieces = pieces(expression)
    assert expression_pieces is not None and may_call(expression_pieces) == CALLS[expression]
