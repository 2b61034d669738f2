"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.running import BIN, ROOT

from .sites import Site

MPICH = "mpicc.mpich"
STEPS = 400  # of steps.c
PROGRAMS = ROOT / "tests" / "jobs" / "programs"


Build = Callable[..., Path]


def run(*words: object, before: Sequence[str] = (), given: str = "") -> subprocess.CompletedProcess[str]:
    """rankrun, to its end, with words before it; `given`: its standard input."""
    command = [*before, str(BIN / "rankrun"), *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, input=given)


def run_on(site: Site, shell: Path, *words: object, given: str = "") -> subprocess.CompletedProcess[str]:
    """rankrun on the hosts of a site, to its end."""
    return run(*site.options(shell), *words, before=site.home, given=given)
