"""What the JSON of every command begins with: its schema, the target, when that was read, and how.

It imports nothing of the inspector. Under one schema's name fields may be added; none changes its meaning.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

FIELDS = "schema", "target", "taken", "how"
TEXT = {"type": "string"}


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
