"""The command `pieglobalsfind`, from its first moment on: what it does is in `command_line`, how it ends in `shell`."""

from __future__ import annotations

from pieglobalsfind.shell.early import TYPE_CHECKING, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    from pieglobalsfind.shell.exit_status import Run


def main(words: Optional[Sequence[str]] = None) -> int:
    """The command; returns the exit status."""
    return status_of("pieglobalsfind", lambda: load(words))


def load(words: Optional[Sequence[str]]) -> Run:
    from pieglobalsfind.cli import command_line  # late: somebody may interrupt it

    return lambda: command_line.run(command_line.parser().parse_args(words))


if __name__ == "__main__":
    raise SystemExit(main())
