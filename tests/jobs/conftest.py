"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import BIN
from tests.sharing import Shared

PROGRAMS = Path(__file__).resolve().parent / "programs"

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path, shared: Shared) -> Build:
    """Build a program of this folder for the embedded runtime."""

    def make(name: str, *options: str, compiler: str = str(BIN / "rankcc")) -> Path:
        program = tmp_path / f"{Path(name).stem}-{Path(compiler).name}"
        return shared.copied([compiler, "-g", "-O1", *options, PROGRAMS / name], program)

    return make


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """rankrun, to its end."""
    command = [str(BIN / "rankrun"), *(str(one) for one in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
