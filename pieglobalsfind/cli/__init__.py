"""The command `pieglobalsfind`: its options and answers are in `command_line`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.shell import signals


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    signals.install()  # before the other imports take their time: Ctrl-C then prints no traceback
    from pieglobalsfind.shell.exit_status import Run, status_of

    def load() -> Run:
        from pieglobalsfind.cli import command_line

        return lambda: command_line.run(command_line.parser().parse_args(words))

    return status_of("pieglobalsfind", load)


if __name__ == "__main__":
    raise SystemExit(main())
