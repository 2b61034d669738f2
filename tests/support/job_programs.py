"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.running import BIN, ROOT

MPICH = "mpicc.mpich"
STEPS = 400  # of steps.c
PROGRAMS = ROOT / "tests" / "jobs" / "programs"


Build = Callable[..., Path]


def run(*words: object, before: Sequence[str] = (), given: str = "") -> subprocess.CompletedProcess[str]:
    """rankrun, to its end, with words before it; `given`: its standard input."""
    command = [*before, str(BIN / "rankrun"), *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, input=given)
