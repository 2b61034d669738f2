"""Options of several commands about what is printed. It loads nothing that prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _ActionsContainer


def add_tsv(parser: _ActionsContainer) -> None:
    """Declare the option that asks for tables alone."""
    parser.add_argument("--tsv", action="store_true", help="tables alone, a line for each record, tabs between cells")
