"""The forms in which several commands print what they have found. It loads nothing that prints tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from argparse import _ActionsContainer


def add_tsv(parser: _ActionsContainer) -> None:
    """Declare the option that asks for tables alone."""
    parser.add_argument("--tsv", action="store_true", help="tables alone, a line for each record, tabs between cells")


def print_json(content: Mapping[str, object], indent: Optional[int] = 1) -> None:
    """Print a document, whole: a reader that has gone shows now."""
    json.dump(content, sys.stdout, indent=indent)
    print(flush=True)
