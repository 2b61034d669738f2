"""`inspector schema` against what the commands print."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import jsonschema
import pytest

from tests.inspector.commands.test_waits import RANKS
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job

NAMES = ("globals", "load", "payload", "pointers", "ranks", "record", "report", "stacks", "waits")


def inspect(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def printed(*words: object) -> Any:
    done = inspect(*words)
    assert done.returncode in (0, 1), done.stderr  # 1: the program has no globals
    return json.loads(done.stdout)


@pytest.fixture
def halves(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "halves.c", ranks=RANKS)


def test_what_commands_print(halves: Job) -> None:
    """Of a job that has deadlocks, collectives and ranks that have exited."""
    assert inspect("schema").stdout.split() == list(NAMES)
    for name in NAMES:
        schema = printed("schema", name)
        jsonschema.Draft202012Validator.check_schema(schema)
        more = ("--duration", "50ms") if name == "record" else ()
        found = printed(name, halves.pid, "--json", *more)
        jsonschema.Draft202012Validator(schema).validate(found)
        if isinstance(found, dict) and "schema" in found:  # a field that is not described is noticed
            assert set(found) == set(schema["properties"])


def test_a_name_that_is_none() -> None:
    done = inspect("schema", "nothing")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("inspector: there is no schema of 'nothing': there are globals, ")
