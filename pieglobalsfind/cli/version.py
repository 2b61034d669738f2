"""`--version` of the commands, and where the pages are that help names as docs/...

Both are of what is installed, and are asked for only then.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pieglobalsfind.errors import UsageError

PACKAGE = "ranklens"  # as it is installed


def pages() -> str:
    """Return the sentence that says where docs/ is: in a checkout, or where a package has put it."""
    above = Path(__file__).resolve().parents
    places = (above[2] / "docs", *(prefix / "share/doc/ranklens/docs" for prefix in above))
    folder = next((place for place in places if (place / "gdb.md").is_file()), None)
    return f"docs/ is {folder}" if folder is not None else "docs/ is not installed here"


class Version(argparse.Action):
    """Prints `NAME VERSION` and ends the command; raises `UsageError` where nothing is installed."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**{**words, "nargs": 0, "help": "show the version and exit"})

    def __call__(self, parser: argparse.ArgumentParser, *words: Any) -> None:
        """Print the version and end the command."""
        from importlib.metadata import PackageNotFoundError, version  # late: it takes time

        try:
            installed = version(PACKAGE)
        except PackageNotFoundError as error:
            sentence = f"{parser.prog} runs from a folder that has no version"
            raise UsageError(sentence, "install it by pip") from error
        print(f"{parser.prog} {installed}")
        parser.exit()
