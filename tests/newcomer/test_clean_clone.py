"""What README tells a newcomer to type, typed in a clean clone: the commands themselves, with all that they install."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.making import TIMEOUT, make
from tests.support.running import ROOT

PROCESSES = Path("/proc")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is not a git checkout, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("newcomer") / "ranklens"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=TIMEOUT)
    yield folder
    assert left_behind(folder) == []


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes that run in `folder` or name it."""
    processes = (path for path in PROCESSES.iterdir() if path.name.isdigit() and int(path.name) != os.getpid())
    return [words for words in (words_of(process, str(folder)) for process in processes) if words]


def words_of(process: Path, folder: str) -> str:
    """The command line of a process that has to do with `folder`; "" for any other, and for one that is gone."""
    try:
        words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        return words if folder in words or str((process / "cwd").readlink()).startswith(folder) else ""
    except OSError:
        return ""


@pytest.mark.timeout(TIMEOUT)
def test_demo(clone: Path) -> None:
    shown = make(clone, "demo")
    assert left_behind(clone) == []
    report, stacks, gdb, find, end = re.split(r"^== .* ==$", shown, flags=re.MULTILINE)[2:7]
    assert "my_rank" in report and re.search(r"0-7|8 ranks", report)
    assert re.search(r"^main at jacobi3d\.c:[\d,]+  \[[\d,-]+\]$", stacks, re.MULTILINE)
    assert len(re.findall(r"^[ *]*\d+ +(?:running|ready|blocked)", gdb, re.MULTILINE)) == 8
    assert len(re.findall(r"^#\d+ .*\bmain \(", gdb, re.MULTILINE)) == 2  # rank bt, twice
    assert re.search(r"^\(gdb\) print my_rank\n\$\d+ = 5$", gdb, re.MULTILINE)
    assert re.search(r"\brank 5\b.* code .*main.*jacobi3d\.c:\d+", find)
    assert re.search(r"\brank 5\b.* data .*my_rank", find)
    assert re.search(r"jacobi3d: residual \S+ after \d+ iterations", end)


@pytest.mark.timeout(TIMEOUT)
def test_setup_has_nothing_left_to_do(clone: Path) -> None:
    make(clone, "setup")
    built = {path: path.stat().st_mtime_ns for part in ("build", ".venv") for path in (clone / part).rglob("*")}
    assert make(clone, "setup") == ""
    again = {path: path.stat().st_mtime_ns for part in ("build", ".venv") for path in (clone / part).rglob("*")}
    assert again == built
    for command in ("rankcc", "rankcxx", "rankfort", "rankrun", "pieglobalsfind", "inspector"):
        assert os.access(clone / ".venv" / "bin" / command, os.X_OK), command


@pytest.mark.timeout(TIMEOUT)
def test_test(clone: Path) -> None:
    """A few tests stand for all: this test is itself a part of `make test`."""
    shown = make(clone, "test", "PYTEST_ARGS=tests/abi/test_layout.py tests/abi/test_program_headers.py")
    assert re.search(r"\b\d+ passed", shown) and "failed" not in shown


@pytest.mark.timeout(TIMEOUT)
def test_the_paths_for_debuggers(clone: Path, tmp_path: Path) -> None:
    """Of a clone, from any folder; tests/packaging has those of a wheel."""
    make(clone, "setup")
    for command, path in (("ranklens-gdb-path", "gdbext/rank.py"), ("ranklens-lldb-path", "lldbext")):
        words = [str(clone / ".venv" / "bin" / command)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == f"{clone}/{path}\n"
