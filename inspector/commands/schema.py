"""`inspector schema`: the form of the JSON that a command prints, as JSON Schema, for programs that read it.

Takes a command's name; prints its schema, or without a name the names. It reads no target.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from pieglobalsfind.errors import UsageError

from .. import schemas

REPORT, PARTS, MERGE = "report", ("globals", "payload", "pointers", "ranks"), "merge"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = "Print the JSON Schema of what a command prints as JSON; without a name, the names."
    parser.epilog = "exit status: 0 done, 2 bad call"
    parser.add_argument("name", nargs="?", metavar="NAME", help="a command: report, stacks, waits ...")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector schema`; returns the exit status."""
    if options.name is None:
        print(*names(), sep="\n", flush=True)
    else:
        print(json.dumps(schema_of(options.name), indent=1), flush=True)
    return 0


def names() -> tuple[str, ...]:
    """Return the names of all schemas."""
    return tuple(sorted((REPORT, *PARTS, MERGE, *schemas.names())))


def schema_of(name: str) -> dict[str, Any]:
    """Raises `UsageError` for a command whose JSON has none."""
    if name in schemas.names():
        return schemas.read(name)
    if name not in names():
        raise UsageError(f"{name!r} has no schema", f"these have one: {', '.join(names())}")
    from ..analysis.report_schema import SCHEMA, part_schema  # late: it needs all parts of a report

    if name == MERGE:  # it prints what it was given: stacks, or a report
        return {"$schema": DRAFT, "title": "inspector merge", "anyOf": [schemas.read("stacks"), SCHEMA]}
    schema = SCHEMA if name == REPORT else part_schema(name)
    return {"$schema": DRAFT, "title": f"inspector {name} --json", **schema}
