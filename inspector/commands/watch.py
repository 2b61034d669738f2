"""`inspector watch`: a live view of a job in a terminal.

Takes a PID; looks again and again and shows what it sees until the user quits. Each look pauses the process for
milliseconds, so that all it shows is of one moment. It stays when the job ends, with the last that was seen.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell.signals import cleanup_on_signal

from ..job.flight_recorder import seconds_of
from ..job.reading import Way
from ..terminal import progress
from ..terminal.restore import FULL_SCREEN, Drawn
from ..watch.lookout import look


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show a running job in the whole terminal, kept up to date: its ranks' states, stacks, the globals "
        "that differ, the payload, which ranks wait for which, and how long each ran. "
        "Every look pauses the process for milliseconds; where one takes long, there are "
        "fewer of them."
    )
    parser.epilog = (
        "keys: 1-6 views, s sort by the next column, r reverse, / filter, Enter open, Escape back, p pause, "
        "? help, q quit; exit status: 0 done, 2 bad call, unreadable target or no terminal"
    )
    parser.add_argument("target", metavar="PID", help="a running process")
    parser.add_argument("--every", metavar="TIME", default="1s", help="how often to look: 1s, 500ms (1s)")
    parser.add_argument(
        "--nonblocking", action="store_true", help="never stop the process: what is in one row may be of two moments"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector watch`; returns the exit status."""
    if not options.target.isdecimal():
        raise UsageError(f"{options.target!r} is not a process", "give the PID of a running job; of a file use report")
    period = seconds_of(options.every, "--every")
    if importlib.util.find_spec("textual") is None:
        raise UsageError("watch needs textual, which is not installed", "pip install 'ranklens[watch]'")
    if not (is_terminal() and os.environ.get("TERM", "dumb") != "dumb"):
        raise UsageError("watch needs a terminal", "use report, or report --json")
    way = Way(nonblocking=options.nonblocking)
    with progress.shown():
        first = look(int(options.target), way, with_values=False)  # so that the screen is there at once
    for name in ("COLUMNS", "LINES"):  # a shell's, from before the window was resized; the terminal knows better
        os.environ.pop(name, None)
    from ..watch.screen import Watch  # late: nothing else needs a screen, and it takes time to load

    screen = Watch(first, period, way)
    drawn = Drawn(sys.stderr.fileno(), FULL_SCREEN)
    drawn.begin()
    try:
        with cleanup_on_signal(drawn.undo):
            last = screen.run()
    finally:
        screen.finish()
    if last:
        print(f"inspector: {last}")
    return screen.return_code or 0


def is_terminal() -> bool:
    """Return whether all three streams are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
