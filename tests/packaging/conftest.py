"""The wheel in an environment of its own, made once for all tests: two builds at once would share build/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.making import make
from tests.support.running import ROOT
from tests.support.sharing import Shared


@pytest.fixture
def fresh(shared: Shared) -> Path:
    """A virtual environment that holds the wheel and its dependencies and no more, also no pip."""
    return shared.made("wheel", install_wheel)


def install_wheel(folder: Path) -> None:
    make(ROOT, "wheel")
    (wheel,) = (ROOT / "build/wheel").glob("ranklens-*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", str(wheel)]
    for command in ([sys.executable, "-m", "venv", "--without-pip", str(folder)], pip):
        subprocess.run(command, check=True, timeout=600, stdin=subprocess.DEVNULL)
