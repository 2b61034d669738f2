"""What the command `inspector` does: its options and its subcommands.

Takes the command line; gives an exit status, or raises `RanklensError`. It loads the one subcommand that is called:
all of them together take longer to load than most take to run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Optional

from pieglobalsfind.cli.version import Version, pages
from pieglobalsfind.shell.exit_status import Run, check_words

from .commands import COMMANDS


class CommandParser(argparse.ArgumentParser):
    """Takes words after options, too: `inspector globals 4711 --differ 'phys*'`."""

    _is_inside = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Take options after words as well as before."""
        if self._is_inside:  # what argparse does for both kinds of words calls this again for each
            return super().parse_known_args(args, namespace)
        self._is_inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inside = False


def loaded(arguments: Optional[Sequence[str]]) -> Run:
    """What runs the command, with the modules loaded that it imports at its head."""
    words = sys.argv[1:] if arguments is None else arguments
    made = parser(next((word for word in words if not word.startswith("-")), ""))
    return lambda: run(made, words)


def run(made: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Returns the exit status: 0 done, 1 nothing found; raises `RanklensError` for a bad call or target."""
    options = made.parse_args(words)
    check_words(vars(options))
    from .job.malloc_tuning import keep_freed  # late: not for --help, nor for a wrong call

    keep_freed()
    return int(options.run(options))


def parser(called: Optional[str] = None) -> argparse.ArgumentParser:
    """With all that one command takes and the names of the others, or, without a name, with all of everything."""
    top = argparse.ArgumentParser(
        prog="inspector",
        description="Inspect MPI programs whose ranks share a process. Nothing is changed, except by a "
        "debugger on serve --write. A running process pauses for milliseconds while it is read: --nonblocking never "
        "stops it, --freeze holds it for the whole command.",
        epilog=f"`inspector COMMAND --help` has a command's options; docs/inspector.md describes them all; {pages()}",
    )
    top.add_argument("--version", action=Version)
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, (module, summary) in COMMANDS.items():
        if called is None or called == name:
            declared = commands.add_parser(name, help=summary)
            declared.set_defaults(command=name)
            import_module(f".commands.{module}", __package__).add_to(declared)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return top
