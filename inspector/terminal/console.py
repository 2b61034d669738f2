"""Where the commands write to: a terminal's own width and colours; in a pipe plain, and a line for each record.

Takes the environment; gives a rich console. rich itself heeds NO_COLOR.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console

PIPE_WIDTH = 1 << 20  # columns: no line is folded


class Screen(Console):
    """Leaves it to the command how it ends when the reader has closed the pipe; rich would exit with 1.

    `has_records`: a record of a table is a line, its cells stand between tabs. `only_tables`: nothing else is printed.
    """

    has_records = False
    only_tables = False

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, but only tables where only tables are wanted."""
        if not self.only_tables or any(getattr(item, "is_table", False) for item in objects):
            if self.has_records:
                options.setdefault("crop", False)  # no line is too long, and to measure all of them takes long
            super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """End as other commands do when the reader closes the pipe."""
        raise BrokenPipeError


def console(only_tables: bool = False) -> Screen:
    """A terminal's own width and colours; records and no colours in a pipe, unless COLUMNS says otherwise.

    `only_tables`: records wherever it goes, and nothing beside them.
    """
    if os.environ.get("COLUMNS", "").strip("0") == "":  # as some editors set it; rich would print nothing at all
        os.environ.pop("COLUMNS", None)
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    screen = Screen(highlight=False, width=PIPE_WIDTH if piped or only_tables else None)
    screen.has_records, screen.only_tables = piped or only_tables, only_tables
    return screen
