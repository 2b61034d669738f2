"""The forms of JSON that commands print, as JSON Schema (draft 2020-12), and the envelope that all of them begin with.

There is one file for each command beside this module; `analysis.report_schema` makes the form of the report and of its
parts. Under one schema's name fields may be added; none changes its meaning. It imports nothing of the inspector.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
FIELDS = "schema", "target", "taken", "how"
TEXT = {"type": "string"}


def names() -> tuple[str, ...]:
    """The commands that have a file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def read(name: str) -> dict[str, Any]:
    """The form of a command of `names()`."""
    schema: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return schema


def schema_name(command: str, version: int) -> str:
    """`ranklens-waits-1`."""
    return f"ranklens-{command}-{version}"


def envelope(schema: str, target: str, how: str, taken: str = "") -> dict[str, Any]:
    """The fields; `taken` is UTC, ISO 8601, and now if it is left out."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"schema": schema, "target": target, "taken": taken or now, "how": how}


def with_envelope(schema: str, properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON Schema of an object with these properties and the envelope's."""
    every = {"schema": {"const": schema}, **dict.fromkeys(FIELDS[1:], TEXT), **properties}
    return {
        "type": "object",
        "properties": every,
        "required": [name for name in every if name not in optional],
        "additionalProperties": False,
    }
