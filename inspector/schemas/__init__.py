"""The forms of JSON that commands print, as JSON Schema (draft 2020-12): one file for each command beside this module.

It imports nothing of the inspector; the report's form, and those of its parts, are made by `analysis.report_schema`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def names() -> tuple[str, ...]:
    """The commands that have a file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def read(name: str) -> dict[str, Any]:
    """The form of a command of `names()`."""
    schema: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return schema
