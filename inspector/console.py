"""Where the commands write to: a terminal's own width and colours, plain and wide in a pipe.

Takes the environment; gives a rich console. rich itself heeds NO_COLOR.
"""

from __future__ import annotations

import os
import sys

from rich.console import Console

PIPE_WIDTH = 160  # columns: nobody's terminal, so lines are folded late


def console() -> Console:
    """A terminal's own width and colours; wide and plain in a pipe, unless COLUMNS says otherwise."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=PIPE_WIDTH if piped else None)
