"""Asks `inspector globals` on the command line, and gives the answers by variable."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support.running import BIN


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """How the command ends with these words after its name."""
    command = [str(BIN / "inspector"), "globals", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def values(*words: object) -> dict[str, Any]:
    """What its JSON has of each variable."""
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return {load["name"]: load for load in json.loads(done.stdout)["globals"]}
