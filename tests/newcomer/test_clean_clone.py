"""What README tells a newcomer to type, typed in a clean clone: the commands themselves, with all that they install."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.places import compile_program
from tests.support.running import ROOT, StartJob

PROCESSES = Path("/proc")
TIMEOUT = 900


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no git checkout, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("newcomer") / "ranklens"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=TIMEOUT)
    yield folder
    assert left_behind(folder) == []


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes that run in `folder` or name it."""
    processes = (one for one in PROCESSES.iterdir() if one.name.isdigit() and int(one.name) != os.getpid())
    return [words for words in (words_of(one, str(folder)) for one in processes) if words]


def words_of(process: Path, folder: str) -> str:
    """The command line of a process that has to do with `folder`; "" for any other, and for one that is gone."""
    try:
        words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        return words if folder in words or str((process / "cwd").readlink()).startswith(folder) else ""
    except OSError:
        return ""


def make(folder: Path, *words: str, **variables: str) -> str:
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
    """One folder of tests stands for all: this test is itself a part of `make test`."""
    shown = make(clone, "test", "PYTEST_ARGS=tests/abi")
    assert re.search(r"\b\d+ passed", shown) and "failed" not in shown


@pytest.mark.timeout(TIMEOUT)
def test_the_paths_for_debuggers(clone: Path, gdb: Path, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """Of a clone, from any folder; of what pip has installed elsewhere, where the packages have names of ours."""
    make(clone, "setup")
    own = clone / ".venv" / "bin"
    assert output(own / "ranklens-gdb-path", tmp_path) == f"{clone}/gdbext/rank.py\n"
    assert output(own / "ranklens-lldb-path", tmp_path) == f"{clone}/lldbext\n"
    installed = tmp_path / "installed"
    command = [own / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--target", installed, clone]
    subprocess.run(list(map(str, command)), check=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    paths = [
        output(installed / "bin" / f"ranklens-{one}-path", tmp_path, PYTHONPATH=str(installed)).strip()
        for one in ("gdb", "lldb")
    ]
    assert paths == [f"{installed}/ranklens_gdbext/rank.py", f"{installed}/ranklens_lldbext"]
    program = compile_program("rankcc", tmp_path, "places.c")
    job = start_job(rankrun, "-n", "2", program)
    job.wait_for("ready")
    in_gdb = ("-nx", "-batch", "-p", job.pid, "-ex", f"source {paths[0]}", "-ex", "rank print shared_name")
    assert output(gdb, tmp_path, *in_gdb).count("\n0: 10\n1: 11\n") == 1
    in_lldb = ("-x", "-b", "-p", job.pid, "-o", f"command script import {paths[1]}", "-o", "rank print shared_name")
    assert output(find_lldb(), tmp_path, *in_lldb).count("\n0: 10\n1: 11\n") == 1


def output(command: Path, folder: Path, *words: object, **variables: str) -> str:
    """What a command prints that is called in a folder."""
    done = subprocess.run(
        [str(command), *map(str, words)],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout
