"""`--version` of the commands: what is installed, asked for only then."""

from __future__ import annotations

import argparse
from typing import Any

from pieglobalsfind.errors import UsageError

PACKAGE = "ranklens"  # as it is installed


class Version(argparse.Action):
    """Prints `NAME VERSION` and ends the command; raises `UsageError` where nothing is installed."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**{**words, "nargs": 0, "help": "show the version and exit"})

    def __call__(self, parser: argparse.ArgumentParser, *words: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version  # late: it takes time

        try:
            found = version(PACKAGE)
        except PackageNotFoundError as error:
            sentence = f"{parser.prog} runs out of a folder, where no version is told"
            raise UsageError(sentence, "install it by pip") from error
        print(f"{parser.prog} {found}")
        parser.exit()
