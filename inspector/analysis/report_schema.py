"""The form of a report in JSON, as JSON Schema: what docs/report-schema.md explains.

Takes nothing. A change of meaning is a new number in `NAME`; fields may be added under the same one.
"""

from __future__ import annotations

from typing import Any

from ..pointers.findings import VERDICTS
from ..schemas import schema_name, with_envelope
from .global_values import VERDICTS as VERDICTS_OF_GLOBALS
from .migration_cost import WAYS
from .payload import CATEGORIES
from .verdict import KINDS

NAME = schema_name("report", 2)
PARTS = {name: schema_name(name, 1) for name in ("globals", "payload", "pointers", "ranks")}

_TEXT = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_OPTIONAL_COUNT = {"type": ["integer", "null"], "minimum": 0}
_RANKS = {"type": "string", "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"}
_ADDRESS = {"type": "string", "pattern": "^0x[0-9a-f]+$"}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_PEER: dict[str, Any] = {"peer": {"type": "integer"}, "tag": {"type": "integer"}}
_WAITING = _object(
    {
        "call": _TEXT,
        **_PEER,
        "communicator": _COUNT,
        "sent": {"type": ["boolean", "null"]},
        "others": _list(_object({**_PEER, "sent": {"type": "boolean"}})),
        "needs_one": {"type": "boolean"},
    }
)
_RANK = _object(
    {
        "rank": _COUNT,
        "state": _TEXT,
        "is_actor": {"type": "boolean"},
        "tier": _TEXT,
        "source": _TEXT,
        "process": {"type": "integer"},
        "moves": _COUNT,
        "exit_status": _OPTIONAL_COUNT,
        "processing_element": {"type": "integer"},
        "kernel_thread": _COUNT,
        "waiting": {"anyOf": [_WAITING, {"type": "null"}]},
        "switches": _OPTIONAL_COUNT,
        "memory": {"anyOf": [_object(dict.fromkeys(CATEGORIES, _OPTIONAL_COUNT)), {"type": "null"}]},
        "unknown": _list(_TEXT),
    }
)
_STATISTICS = _object(
    {
        "count": _COUNT,
        **dict.fromkeys(("minimum", "maximum", "mean", "deviation"), _NUMBER),
        **dict.fromkeys(("lowest", "highest", "beyond", "not_finite"), _RANKS),
    }
)
_GLOBAL = _object(
    {
        "name": _TEXT,
        "object": _TEXT,
        "file": _TEXT,
        "line": _COUNT,
        "type": _TEXT,
        "size": _COUNT,
        "storage": _TEXT,
        "differs": {"type": "boolean"},
        "verdict": {"enum": list(VERDICTS_OF_GLOBALS)},
        "needless": _COUNT,
        "uncompared": _TEXT,
        "statistics": {"anyOf": [_STATISTICS, {"type": "null"}]},
        "groups": _list(_object({"ranks": _RANKS, "value": _TEXT})),
    },
    optional=("uncompared", "statistics"),
)
_DIAGNOSIS = _object(dict.fromkeys(("id", "severity", "cause", "evidence", "cure"), _TEXT))
_FINDING = _object(
    {
        "rank": _COUNT,
        "object": _TEXT,
        "offset": _ADDRESS,
        "address": _ADDRESS,
        "symbol": _TEXT,
        "type": _TEXT,
        "verdict": {"enum": list(VERDICTS)},
        "evidence": _TEXT,
        "old": _ADDRESS,
        "new": _ADDRESS,
        "right": {"anyOf": [_ADDRESS, {"type": "null"}]},
        "demangled": {"anyOf": [_ADDRESS, {"type": "null"}]},
        "rewritten": {"type": "boolean"},
        "past_end": {"type": "boolean"},
    }
)
_OUTLIER = _object({"sentence": _TEXT, "ranks": _RANKS, "command": _TEXT})
_VERDICT = _object(
    {
        "kind": {"enum": list(KINDS)},
        "sentence": _TEXT,
        "ranks": _RANKS,
        "command": _TEXT,
        "findings": _list(_OUTLIER),
        "diagnoses": _list(_TEXT),
    }
)
_CRASH = _object(
    {
        "signal": _TEXT,
        "rank": _OPTIONAL_COUNT,
        "address": {"anyOf": [_ADDRESS, {"type": "null"}]},
        "owner": _TEXT,
        "place": _TEXT,
        "message": _TEXT,
        "handler": _TEXT,
        "diagnosis": {"anyOf": [_DIAGNOSIS, {"type": "null"}]},
    },
    optional=("handler",),
)
_ALARM = _object({"object": _TEXT, "ranks": _RANKS, "of_ranks": _COUNT, "sentence": _TEXT})
_POINTERS = _object(
    {
        "alarms": _list(_ALARM),
        "counts": _list(_object({"object": _TEXT, "verdict": {"enum": list(VERDICTS)}, "words": _COUNT})),
        "changed": _COUNT,
        "findings": _list(_FINDING),
        "unread": _list(_object({"ranks": _RANKS, "reason": _TEXT})),
    }
)
_SIZES = _object(dict.fromkeys(WAYS, _COUNT))
_WHAT_IF = _object(
    {
        "rank": _COUNT,
        "bytes": _SIZES,
        "seconds": _object(dict.fromkeys(WAYS, _NUMBER)),
        "pages": _object(dict.fromkeys(("zero", "original", "common", "unread"), _COUNT)),
    }
)
_PAYLOAD = _object(
    {"rank": _COUNT, "total": _COUNT, **dict.fromkeys(CATEGORIES, _COUNT), "notes": _list(_TEXT)},
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        {
            "schema": {"const": NAME},
            "target": _TEXT,
            "job": _TEXT,
            "taken": _TEXT,
            "how": _TEXT,
            "method": _TEXT,
            "runtime": _TEXT,
            "rewrite_mode": _TEXT,
            "rank_count": _COUNT,
            "verdict": _VERDICT,
            "crashes": _list(_CRASH),
            "ranks": _list(_RANK),
            "globals": _list(_GLOBAL),
            "needless": _COUNT,
            "apart": _COUNT,
            "diagnoses": _list(_DIAGNOSIS),
            "pointers": _POINTERS,
            "payload": _list(_PAYLOAD),
            "warnings": _list(_TEXT),
        },
        optional=("verdict", "crashes", "apart"),
    ),
}


def part_schema(part: str) -> dict[str, Any]:
    """The form of what `inspector globals`, `ranks`, `pointers` or `payload` prints."""
    schema: dict[str, Any] = SCHEMA["properties"][part]
    if part == "pointers":
        return with_envelope(PARTS[part], schema["properties"])
    if part == "payload":  # --what-if has the other
        return with_envelope(PARTS[part], {part: schema, "what_if": _list(_WHAT_IF)}, (part, "what_if"))
    return with_envelope(PARTS[part], {part: schema})
