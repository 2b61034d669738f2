"""Options that had another name: the old one answers with a sentence that gives the new one, for one release."""

from __future__ import annotations

import argparse
from typing import Any

from pieglobalsfind.errors import UsageError


class RenamedOption(argparse.Action):
    """An option's old name, which `--help` does not list; raises `UsageError`."""

    def __init__(self, *, new_name: str, **words: Any) -> None:
        super().__init__(**{**words, "nargs": "?", "help": argparse.SUPPRESS})
        self._new_name = new_name

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, values: object, option: Any = None) -> None:
        """Raise `UsageError` with the new name."""
        raise UsageError(f"{option} has another name now", f"use {self._new_name}")
