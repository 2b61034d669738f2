"""Runs commands of the inspector one after another in one interpreter, so that Python starts once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.running import built

RUN = """
import contextlib, io, json, sys, traceback
from ranklens_inspector.cli import main

def run(words):
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        except BaseException:
            status = 1
            traceback.print_exc()
    return [words, status, output.getvalue(), errors.getvalue()]

json.dump([run(words) for words in json.load(sys.stdin)], sys.stdout)
"""


@dataclass(frozen=True)
class Done:
    """How a command ended, as subprocess.CompletedProcess has it."""

    args: list[str]
    returncode: int
    stdout: str
    stderr: str


def in_one_interpreter(commands: Sequence[Sequence[object]]) -> list[Done]:
    """What each of the commands (without the name `inspector`) prints, and how it ends."""
    asked = json.dumps([[str(word) for word in words] for words in commands])
    done = subprocess.run([built("python"), "-c", RUN], input=asked, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return [Done(*load) for load in json.loads(done.stdout)]
