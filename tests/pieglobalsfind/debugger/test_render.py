"""Blocks as plain text: widths hold, and nothing from a target reaches the screen as a control character."""

from __future__ import annotations

import unicodedata

import pytest

from pieglobalsfind.debugger.declare import Column, Finding, Table, TextBlock
from pieglobalsfind.debugger.render import columns_of, render
from pieglobalsfind.shell.escape import escape

COLUMNS = (Column("n", numeric=True), Column("name"), Column("text", flexible=True))


def lines(table: Table, width: int = 0) -> list[str]:
    (text,) = render([table], width)
    return text.split("\n")


def test_columns_are_aligned() -> None:
    assert lines(Table(COLUMNS, (("1", "a", "x"), ("100", "long", "y")))) == [
        "  n  name  text",
        "  1  a     x",
        "100  long  y",
    ]


def test_only_flexible_columns_are_shortened() -> None:
    found = lines(Table(COLUMNS, (("1", "stays whole", "t" * 50),)), width=40)
    assert all(columns_of(line) <= 40 for line in found)
    assert found[1].startswith("1  stays whole  ttt") and found[1].endswith("...")


def test_a_narrow_screen_leaves_something_to_read() -> None:
    assert "ttttttttt..." in lines(Table(COLUMNS, (("1", "name", "t" * 50),)), width=5)[1]


@pytest.mark.parametrize("text", ["\x1b[2J", "a\tb", "\x07", "\u202egnp", "\x9b31m", "\udc80", "\x00", "a\rb"])
def test_nothing_controls_the_terminal(text: str) -> None:
    for block in (TextBlock(text), Finding(text, text), Table((Column("x"),), ((text,),))):
        (shown,) = render([block])
        assert not [one for one in shown if unicodedata.category(one)[0] == "C" and one != "\n"]


def test_what_is_harmless_stays() -> None:
    for text in ("plain", "naïve Größe", "数値", "a\nb", "<value>"):
        assert escape(text) == text


def test_wide_characters_take_two_columns() -> None:
    found = lines(Table((Column("a"), Column("b")), (("数値", "x"), ("abcd", "y"))))
    assert found[1] == "数値  x" and found[2] == "abcd  y"


def test_a_finding_has_its_hint_below() -> None:
    assert list(render([Finding("it is so", "do this"), Finding("and so")])) == [
        "warning: it is so\n  do this",
        "warning: and so",
    ]
