"""The command `inspector`: its options and subcommands are in `command_line`.

Exit status: 0 done, 1 nothing found, 2 bad call or target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.shell import signals


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    signals.install()  # before the other imports take their time: Ctrl-C then prints no traceback
    from pieglobalsfind.shell.exit_status import Run, status_of

    def load() -> Run:
        from . import command_line

        return command_line.loaded(arguments)

    return status_of("inspector", load)
