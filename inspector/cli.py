"""The command `inspector`, from its first moment on.

Takes the command line; gives an exit status: 0 done, 1 nothing found, 2 bad call or target. What it does is in
`command_line`, and how it ends in `pieglobalsfind.shell.exit_status`.
"""

from __future__ import annotations

from pieglobalsfind.shell.early import TYPE_CHECKING, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    from pieglobalsfind.shell.exit_status import Run


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    return status_of("inspector", lambda: load(arguments))


def load(arguments: Optional[Sequence[str]]) -> Run:
    from . import command_line  # late: it takes time, in which somebody may interrupt it

    return command_line.loaded(arguments)
