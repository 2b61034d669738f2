"""Where the commands write to: a terminal's own width and colours, plain and wide in a pipe.

Takes the environment; gives a rich console. rich itself heeds NO_COLOR.
"""

from __future__ import annotations

import os
import sys

from rich.console import Console

PIPE_WIDTH = 160  # columns: nobody's terminal, so lines are folded late


class Screen(Console):
    """Leaves it to the command how it ends when nobody reads any more; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Screen:
    """A terminal's own width and colours; wide and plain in a pipe, unless COLUMNS says otherwise."""
    if os.environ.get("COLUMNS", "").strip("0") == "":  # as some editors set it; rich would print nothing at all
        os.environ.pop("COLUMNS", None)
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Screen(highlight=False, width=PIPE_WIDTH if piped else None)
