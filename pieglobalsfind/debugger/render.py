"""Turns blocks into plain text for a debugger's screen.

Takes blocks and a width in columns; gives text without a final newline. Nothing that came from a target reaches the
screen as a control character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from pieglobalsfind.debugger.declare import Block, Column, Finding, Table, TextBlock
from pieglobalsfind.shell.escape import escape

GAP = "  "
LEAST = 12  # columns below which a flexible column is not shortened
ELLIPSIS = "..."


def render(blocks: Iterable[Block], width: int = 0) -> Iterable[str]:
    """One text per block, as soon as the block is there; `width` 0: unlimited."""
    for block in blocks:
        if isinstance(block, TextBlock):
            yield escape(block.text)
        elif isinstance(block, Table):
            yield "\n".join(_table_lines(block, width))
        else:
            yield _finding_text(block)


def _finding_text(finding: Finding) -> str:
    sentence = f"warning: {escape(finding.sentence)}"
    return f"{sentence}\n  {escape(finding.hint)}" if finding.hint else sentence


def columns_of(text: str) -> int:
    """How many columns of a terminal `text` takes (Unicode Annex 11: wide characters take two, marks none)."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _table_lines(table: Table, width: int) -> Iterable[str]:
    rows = [[escape(cell).replace("\n", " ") for cell in row] for row in table.rows]
    cells = [[column.title for column in table.columns], *rows]
    needed = [max(columns_of(row[index]) for row in cells) for index in range(len(table.columns))]
    given = _fitted(table.columns, needed, width)
    for row in cells:
        yield GAP.join(map(_placed, row, table.columns, given)).rstrip()


def _fitted(columns: tuple[Column, ...], needed: list[int], width: int) -> list[int]:
    """The columns' widths: what is too much is taken from the widest flexible column, column by column."""
    given = list(needed)
    excess = sum(given) + len(GAP) * (len(given) - 1) - width if width else 0
    flexible = [index for index, column in enumerate(columns) if column.flexible]
    for _ in range(max(excess, 0)):
        widest = max(flexible, key=lambda index: given[index], default=None)
        if widest is None or given[widest] <= LEAST:
            break
        given[widest] -= 1
    return given


def _placed(cell: str, column: Column, width: int) -> str:
    shown = _shortened(cell, width)
    blank = " " * (width - columns_of(shown))
    return blank + shown if column.numeric else shown + blank


def _shortened(cell: str, width: int) -> str:
    if columns_of(cell) <= width:
        return cell
    kept, used = "", len(ELLIPSIS)
    for character in cell:
        used += _columns(character)
        if used > width:
            break
        kept += character
    return kept + ELLIPSIS
