"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import BIN

PROGRAMS = Path(__file__).resolve().parent / "programs"

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build a program of this folder for the embedded runtime."""

    def make(name: str, *options: str, compiler: str = str(BIN / "rankcc")) -> Path:
        program = tmp_path / f"{Path(name).stem}-{Path(compiler).name}"
        command = [compiler, "-g", "-O1", *options, str(PROGRAMS / name), "-o", str(program)]
        subprocess.run(command, check=True, timeout=120)
        return program

    return make


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """rankrun, to its end."""
    command = [str(BIN / "rankrun"), *(str(one) for one in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
