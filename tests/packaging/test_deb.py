"""The Debian package, unpacked and not installed: that needs root and a system to change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.making import TIMEOUT
from tests.support.running import ROOT

pytestmark = pytest.mark.timeout(TIMEOUT)


def run(*words: object, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        list(map(str, words)), env={**environment, **variables}, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this system has no dpkg-deb")
def test_its_commands_run(fresh: Path, tmp_path: Path) -> None:
    """Of the wheel that is in build/ since `fresh` was made; every script is for the system's Python."""
    package = run("packaging/debian/build").strip()
    assert "Depends: python3 (>= 3.9), python3-rich" in run("dpkg-deb", "--info", package)
    run("dpkg-deb", "--extract", package, tmp_path)
    modules = tmp_path / "usr/lib/python3/dist-packages"
    commands = sorted(path.name for path in (tmp_path / "usr/bin").iterdir())
    tools = [name for name in commands if not (tmp_path / "usr/bin" / name).is_symlink()]
    assert {"inspector", "pieglobalsfind"} <= set(tools) and {"rankcc", "rankrun"} <= set(commands) - set(tools)
    for name in tools:
        assert (tmp_path / "usr/bin" / name).read_text().startswith("#!/usr/bin/python3\n")
    printed = run("python3", tmp_path / "usr/bin/pieglobalsfind", "--version", PYTHONPATH=str(modules))
    assert printed.startswith("pieglobalsfind ") and printed.split()[1] in package
    assert run(tmp_path / "usr/bin/rankrun", "--version").split()[1] in package
    pages = tmp_path / "usr/share/doc/ranklens"
    assert (pages / "docs/gdb.md").is_file() and (pages / "examples/demo.sh").is_file()
