"""Tables in terminals of every width: no word of a header breaks, nothing is lost, nothing is taken for markup."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from inspector.output.adaptive_table import FOLDED, Listing
from inspector.output.table_cells import ranks_cell
from inspector.terminal.console import console
from pieglobalsfind.ranks import rankset

COLUMNS = ("ranks", "state", "waits in", "element", "found by", "switches", "false positive")
ROWS = (
    ("0-2", "blocked", "MPI_Recv from 1, tag 17", "0", "registry", "3 to 12", "1234567"),
    ("", "", "[b]wait[/b]", "0", "registry", "7", "0"),
    ("3", "running", f"std::vector<{'x' * 60}>", "-", "elf", "1", "12"),
)


def lines(width: int) -> list[str]:
    listing = Listing(COLUMNS, (6,))
    for row in ROWS:
        listing.add(row)
    screen = Console(file=(text := io.StringIO()), width=width, highlight=False)
    screen.print(listing)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", range(30, 160, 5))
def test_any_width(width: int) -> None:
    found = lines(width)
    assert max(map(len, found)) <= width
    words = {word for line in found for word in line.split()}
    wanted = {word for row in (COLUMNS, *ROWS) for cell in row for word in cell.split() if len(word) <= FOLDED}
    assert wanted <= words
    text = "".join("".join(found).split())
    assert text.count("x") == 60


def test_a_line_for_each_cell() -> None:
    """Where columns don't fit; what a row has of the one before is not said again."""
    found = [line.rstrip() for line in lines(50)]
    assert found[:2] == ["ranks             0-2", "  state           blocked"]
    assert found[7:9] == ["  waits in        [b]wait[/b]", "  element         0"]
    assert [line.partition(" ")[0] for line in found if not line.startswith(" ")] == ["ranks", "ranks"]


def records(rows: Sequence[Sequence[str]], columns: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What `--tsv` prints, and a heading that it does not."""
    listing = Listing(columns)
    for row in rows:
        listing.add(row)
    screen = console(only_tables=True)
    screen.print("a heading")
    screen.print(listing)
    return capsys.readouterr().out


def test_a_line_for_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is folded or padded, what the row before has said is said again, and tables stand alone."""
    columns = ("variable", "ranks", "value")
    long = "x" * 500
    rows = [("residual", "0", "1.5"), ("", "1", long), ("[b]t[/b]", "0-1", "")]
    assert records(rows, columns, capsys).split("\n") == [
        "variable\tranks\tvalue",
        "residual\t0\t1.5",
        f"residual\t1\t{long}",
        "[b]t[/b]\t0-1\t",
        "",
    ]


def test_many_ranks_are_whole_in_a_record() -> None:
    """A terminal has the first few of many ranges; a program that reads the table gets every rank."""
    ranks = range(0, 400, 3)
    assert rankset.parse(ranks_cell(ranks, console(only_tables=True))) == rankset.parse(rankset.compact(ranks))
    assert ranks_cell(ranks, Console()).endswith(",... (134 ranks)")


@pytest.mark.parametrize("width", [60, 80])
def test_values_stand_below_their_names_where_a_line_has_no_room(width: int) -> None:
    listing = Listing(("variable", "type", "ranks", "value"), below=(2, 3))
    for row in (("residual", "double", "0", "7"), ("", "", "1-3", "word " * 40), ("small", "int", "0-3", "1")):
        listing.add(row)
    screen = Console(file=(text := io.StringIO()), width=width, highlight=False)
    screen.print(listing)
    found = [line.rstrip() for line in text.getvalue().splitlines()]
    assert found[:3] == ["variable  type  ranks  value", "residual  double", "    0    7"]
    assert found[3].startswith("    1-3  word word")
    assert found[-2:] == ["small  int", "    0-3  1"]
    assert max(map(len, found)) <= width and " ".join(found).split().count("word") == 40
    assert all(line.startswith(" " * 9) for line in found[4:-2])


def test_numbers_stay_side_by_side_under_folded_headers() -> None:
    """First the headers of numbers are folded, then the gap shrinks, then each cell gets a line."""
    columns = ("object", "proven", "false positive", "another rank's")
    listing = Listing(columns, (1, 2, 3))
    listing.add(("solver.so", "6728", "0", "12"))

    def printed(width: int) -> list[str]:
        screen = Console(file=(text := io.StringIO()), width=width, highlight=False)
        screen.print(listing)
        return [line.rstrip() for line in text.getvalue().splitlines()]

    assert printed(60) == [
        "object     proven  false positive  another rank's",
        "solver.so    6728               0              12",
    ]
    assert printed(40) == [
        "                      false  another",
        "object     proven  positive   rank's",
        "solver.so    6728         0       12",
    ]
    assert printed(33) == [
        "                    false another",
        "object    proven positive  rank's",
        "solver.so   6728        0      12",
    ]
    assert printed(32)[:2] == ["object            solver.so", "  proven          6728"]
