"""`ranklens-lldb-path`, or `python3 -m lldbext` in the project's folder: prints the path to import in LLDB.

Takes the command line. Imports nothing of LLDB's, which is not there outside of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from pieglobalsfind.cli.version import Version
from pieglobalsfind.shell.exit_status import status_of

NAME = "ranklens-lldb-path"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Print the path; returns the exit status."""
    return status_of(NAME, lambda: lambda: run(arguments))


def run(arguments: Optional[Sequence[str]]) -> int:
    """Print the folder to import in LLDB; returns the exit status."""
    parser().parse_args(arguments)
    print(Path(__file__).resolve().parent)
    return 0


def parser() -> argparse.ArgumentParser:
    """Declare what the command takes."""
    made = argparse.ArgumentParser(
        prog=NAME,
        description="Print the path to import in LLDB.",
        epilog='example: lldb -p PID -o "command script import $(ranklens-lldb-path)"',
    )
    made.add_argument("--version", action=Version)
    return made


if __name__ == "__main__":
    sys.exit(main())
