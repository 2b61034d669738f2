"""`ranklens-gdb-path`, or `python3 -m gdbext` in the project's folder: prints the path of the file to source in GDB.

Takes the command line. Imports nothing of GDB's, which is not there outside of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from pieglobalsfind.cli.version import Version
from pieglobalsfind.shell.exit_status import status_of

NAME = "ranklens-gdb-path"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Print the path; returns the exit status."""
    return status_of(NAME, lambda: lambda: run(arguments))


def run(arguments: Optional[Sequence[str]]) -> int:
    """Print where the file to `source` in GDB lies; returns the exit status."""
    parser().parse_args(arguments)
    print(Path(__file__).resolve().with_name("rank.py"))
    return 0


def parser() -> argparse.ArgumentParser:
    """Declare what the command takes."""
    made = argparse.ArgumentParser(
        prog=NAME,
        description="Print the path of the file to source in GDB.",
        epilog='example: gdb -p PID -ex "source $(ranklens-gdb-path)"',
    )
    made.add_argument("--version", action=Version)
    return made


if __name__ == "__main__":
    sys.exit(main())
