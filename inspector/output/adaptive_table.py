"""A table that stays legible in any terminal: where its columns don't fit side by side, a line for each cell.

In a pipe it is a line for each record, with nothing padded, folded or left out that the record before has said.

Takes rows of text; gives something that rich prints. Every cell is literal text, never markup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Union

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

BETWEEN = "\t"  # two cells of a record in a pipe
GAP = 2  # columns of the terminal between two of a table; 1 where the table fits only then
INSET = 2  # columns before the names of all lines of a row but the first
FOLDED = 12  # columns that a cell without spaces needs at least; a longer one may be folded


class Listing:
    """Rows under named columns; those `right` are numbers, which are not folded.

    `below` are columns that have lines of their own, below the others, where a row does not fit into one line.
    """

    is_table = True

    def __init__(self, columns: Sequence[str], right: Collection[int] = (), below: Collection[int] = ()) -> None:
        self._columns = columns
        self._right = right
        self._below = below
        self._rows: list[tuple[tuple[str, ...], str]] = []

    def add(self, cells: Iterable[str], style: str = "") -> None:
        """A row; empty cells at its begin are those of the row before."""
        self._rows.append((tuple(cells), style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            return
        if getattr(console, "has_records", False):
            yield from self._as_records()
            return
        if self._below and self._widest() > options.max_width:
            yield from self._in_blocks(options.max_width)
            return
        gap = next((gap for gap in (GAP, 1) if self._needed(gap) <= options.max_width), None)
        if gap is None and len(self._columns) > 2:
            yield from self._as_lines()
        else:
            yield self._as_table(gap or 1, self._widest() <= options.max_width)

    def _needed(self, gap: int) -> int:
        """The columns of the terminal that a table takes at least, with headers and text folded."""
        return sum(map(self._least, range(len(self._columns)))) + gap * (len(self._columns) - 1)

    def _least(self, number: int) -> int:
        """The columns of the terminal below which the header, or a number, would break inside a word."""
        header, cells = self._columns[number], [cells[number] for cells, _ in self._rows]
        if number in self._right:
            return max(map(len, (*header.split(), *cells)))
        longest = max((len(word) for cell in cells for word in cell.split()), default=0)
        return max(min(longest, FOLDED), *map(len, header.split()))

    def _widest(self) -> int:
        """The columns of the terminal that a table takes in which nothing is folded."""
        columns = zip(self._columns, *(cells for cells, _ in self._rows))
        return sum(max(map(cell_len, column)) for column in columns) + GAP * (len(self._columns) - 1)

    def _as_records(self) -> Iterator[Segment]:
        """Lines that no console folds or pads."""
        before: Sequence[str] = self._columns
        for cells in (tuple(self._columns), *(cells for cells, _ in self._rows)):
            first = next((at for at, cell in enumerate(cells) if cell), 0)
            before = (*before[:first], *cells[first:])
            yield Segment(BETWEEN.join(before))
            yield Segment.line()

    def _in_blocks(self, width: int) -> Iterator[Union[Text, Table]]:
        """What a row is about in a line, and below it the rest, which may be long."""
        above = [at for at in range(len(self._columns)) if at not in self._below]
        yield Text((" " * GAP).join(self._columns[at] for at in (*above, *self._below)), style="bold")
        firsts = [cells[min(self._below)] for cells, _ in self._rows]
        widest = min(max(map(cell_len, firsts)), width // 3)
        for cells, style in self._rows:
            lead = (" " * GAP).join(cells[at] for at in above if cells[at])
            if lead:
                yield Text(lead, style=style or "bold", overflow="fold")
            lines = Table.grid(padding=(0, GAP, 0, 0))
            lines.add_column(width=2 * INSET - GAP)
            lines.add_column(min_width=widest, max_width=widest, overflow="fold")
            for _ in list(self._below)[1:]:
                lines.add_column(overflow="fold")
            lines.add_row("", *(Text(cells[at]) for at in self._below), style=style)
            yield lines

    def _as_table(self, gap: int, fits: bool) -> Table:
        table = Table(box=None, pad_edge=False, collapse_padding=gap == 1, header_style="bold")
        for number, name in enumerate(self._columns):
            is_number = number in self._right
            table.add_column(
                name if fits or not is_number else name.replace(" ", "\n"),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",
                min_width=self._least(number),
            )
        for cells, style in self._rows:
            table.add_row(*map(Text, cells), style=style)
        return table

    def _as_lines(self) -> Iterator[Table]:
        widest = INSET + max(map(len, self._columns))
        for cells, style in self._rows:
            lines = Table.grid(padding=(0, GAP, 0, 0))
            lines.add_column(no_wrap=True, min_width=widest, style="bold")
            lines.add_column(overflow="fold")
            for number, (name, cell) in enumerate(zip(self._columns, cells)):
                if cell:
                    lines.add_row(Text(" " * INSET * bool(number) + name), Text(cell), style=style)
            yield lines
