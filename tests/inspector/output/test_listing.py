"""Tables in terminals of every width: no word of a header breaks, nothing is lost, nothing is taken for markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from inspector.output.listing import FOLDED, Listing

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
