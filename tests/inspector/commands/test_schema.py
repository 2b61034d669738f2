"""`inspector schema` against what the commands print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inspector.command_line import parser
from inspector.commands import COMMANDS
from inspector.schemas import FIELDS
from tests.inspector.commands.test_waits import RANKS
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job

# What is asked beyond the job's pid, by command; two ranks come before it
ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit": ((), ("--variables",), ("--method", "pie")),
    "events": (("--no-follow",),),
    "globals": ((), ("--all",)),
    "load": ((),),
    "merge": (),
    "payload": ((), ("--what-if",)),
    "pointers": ((),),
    "ranks": ((),),
    "record": (("--duration", "50ms"),),
    "report": ((),),
    "stacks": ((),),
    "waits": ((),),
    "why-different": ((),),
}

LINE_BY_LINE = ("events", "load")


def inspect(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def output_of(*words: object) -> str:
    done = inspect(*words)
    assert done.returncode in (0, 1), done.stderr  # 1: there is nothing of what is asked for
    return done.stdout


def printed(*words: object) -> Any:
    return json.loads(output_of(*words))


def schema_of(name: str) -> Any:
    schema = printed("schema", name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def validate(schema: Any, found: Any) -> None:
    jsonschema.Draft202012Validator(schema).validate(found)
    assert set(FIELDS) <= set(found)
    assert all(isinstance(found[field], str) and found[field] for field in FIELDS)
    if "properties" in schema:  # a field that is not described is noticed
        assert set(found) <= set(schema["properties"])


@pytest.fixture
def halves(start_ranks: StartRanks) -> Job:
    """A job that has deadlocks, collectives and ranks that have exited."""
    return start_ranks(SOURCES / "halves.c", ranks=RANKS)


def test_every_command_that_prints_json_has_a_schema() -> None:
    assert inspect("schema").stdout.split() == sorted(ASKED)
    (declared,) = (action.choices for action in parser()._actions if isinstance(action.choices, dict))
    prints = {name for name in COMMANDS if "--json" in declared[name].format_usage()}
    assert prints == set(ASKED)


def test_what_commands_print(halves: Job) -> None:
    for name, calls in ASKED.items():
        schema = schema_of(name)
        between = ("0", "3") if name == "why-different" else ()
        for words in calls:
            lines = output_of(name, *between, halves.pid, "--json", *words)
            whole = [json.loads(text) for text in (lines.splitlines() if name in LINE_BY_LINE else [lines])]
            validate(schema, whole[0])
            for line in whole[1:]:
                jsonschema.Draft202012Validator(schema).validate(line)
            assert len(whole) > 1 or name != "events"


def test_what_merge_prints(halves: Job, tmp_path: Path) -> None:
    for name in ("stacks", "report"):
        (tmp_path / name).write_text(output_of(name, halves.pid, "--json"))
        merged = printed("merge", tmp_path / name, tmp_path / name, "--json")
        validate(schema_of("merge"), merged)
        assert merged["schema"] == schema_of(name)["properties"]["schema"]["const"]


def test_a_name_that_is_none() -> None:
    done = inspect("schema", "nothing")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("inspector: 'nothing' has no schema: these have one: audit, events, globals, ")
