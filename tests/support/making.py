"""Runs `make` as a user does, whatever runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TIMEOUT = 900  # seconds


def make(folder: Path, *words: str, **variables: str) -> str:
    """Run `make` in a folder; returns its standard output, and fails the test if `make` does."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST"))
    }
    done = subprocess.run(
        ["make", *words],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"make {' '.join(words)}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
