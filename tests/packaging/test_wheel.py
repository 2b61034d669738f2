"""The wheel, with what it depends on, in a fresh virtual environment: what `pip install ranklens` gives a user."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.places import compile_program
from tests.support.making import TIMEOUT
from tests.support.running import ROOT, Job, StartJob

MOST_BYTES = 30 << 20  # of all that a plain installation puts on the disk
RANKS = 2

pytestmark = pytest.mark.timeout(TIMEOUT)


def run(words: Sequence[object], folder: Path = ROOT, status: int = 0) -> str:
    """The standard output of a command; its standard error if it should fail."""
    command = list(map(str, words))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL
    )
    assert done.returncode == status, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stderr if status else done.stdout


@pytest.fixture
def job(rankrun: Path, start_job: StartJob, tmp_path: Path) -> Job:
    started = start_job(rankrun, "-n", RANKS, compile_program("rankcc", tmp_path, "places.c"))
    started.wait_for("ready")
    return started


def test_it_takes_under_30_mb_with_all_it_depends_on(fresh: Path) -> None:
    sizes = [path.stat().st_blocks * 512 for path in fresh.rglob("*") if not path.is_symlink()]
    assert sum(sizes) < MOST_BYTES


def test_it_holds_every_module_once_and_nothing_else(fresh: Path) -> None:
    """What git knows of the four packages, under their installed names: no test, and nothing of an earlier build."""
    names = {"gdbext": "ranklens_gdbext", "lldbext": "ranklens_lldbext", "inspector": "ranklens_inspector"}
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is not a git checkout, so nothing says which files belong to it")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "pieglobalsfind", *names]
    tracked = [one for one in run(command).split() if (ROOT / one).exists()]
    expected = sorted("/".join((names.get(top, top), rest)) for top, _, rest in (one.partition("/") for one in tracked))
    (wheel,) = (ROOT / "build/wheel").glob("ranklens-*.whl")
    held = [
        one for one in zipfile.ZipFile(wheel).namelist() if one.split("/")[0] in {"pieglobalsfind", *names.values()}
    ]
    assert sorted(held) == expected
    assert (fresh / "share/man/man1/inspector.1").is_file()
    assert (fresh / "share/doc/ranklens/examples/jacobi3d.c").is_file()
    assert (fresh / "share/bash-completion/completions/inspector").is_file()


def test_help_says_where_the_pages_are_that_it_names(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no text is wrapped
    folder = fresh / "share/doc/ranklens/docs"
    said = " ".join(run([fresh / "bin/inspector", "--help"], tmp_path).split())
    assert f"docs/ is {folder}" in said
    commands = re.findall(r"^    ([a-z-]+)", run([fresh / "bin/inspector", "--help"], tmp_path), re.MULTILINE)
    assert "report" in commands
    texts = "".join(run([fresh / "bin/inspector", command, "--help"], tmp_path) for command in commands)
    named = set(re.findall(r"docs/([a-z-]+\.md)", texts.replace("-\n", "-")))
    assert named and {one for one in named if not (folder / one).is_file()} == set()


def test_its_page_on_an_index_has_links_that_work(fresh: Path) -> None:
    (wheel,) = (ROOT / "build/wheel").glob("ranklens-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        page = opened.read(name).decode()
    assert "## First session" in page
    assert not re.findall(r"\]\((?!https:)[^)]*\)", page)


def test_the_inspector_reads_a_job(fresh: Path, job: Job, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    report = run([fresh / "bin/inspector", "report", job.pid, "--html", page], tmp_path)
    assert "shared_name" in run([fresh / "bin/inspector", "globals", job.pid], tmp_path), report
    assert "shared_name" in page.read_text() and "<script" in page.read_text()
    schema = json.loads(run([fresh / "bin/inspector", "schema", "report"], tmp_path))
    printed = json.loads(run([fresh / "bin/inspector", "report", job.pid, "--json"], tmp_path))
    jsonschema.validate(printed, schema)
    assert re.search(r"^main at places\.c", run([fresh / "bin/inspector", "stacks", job.pid], tmp_path), re.MULTILINE)


def test_both_debuggers_load_their_extensions(fresh: Path, job: Job, gdb: Path, tmp_path: Path) -> None:
    paths = [run([fresh / f"bin/ranklens-{one}-path"], tmp_path).strip() for one in ("gdb", "lldb")]
    assert all(path.startswith(str(fresh)) for path in paths)
    in_gdb = ["-nx", "-batch", "-p", job.pid, "-ex", f"source {paths[0]}", "-ex", "rank print shared_name"]
    assert run([gdb, *in_gdb], tmp_path).count("\n0: 10\n1: 11\n") == 1
    in_lldb = ["-x", "-b", "-p", job.pid, "-o", f"command script import {paths[1]}", "-o", "rank print shared_name"]
    assert run([find_lldb(), *in_lldb], tmp_path).count("\n0: 10\n1: 11\n") == 1


def test_an_extra_that_is_missing_is_named(fresh: Path, tmp_path: Path) -> None:
    """`watch` needs one as a whole, `audit` for one method."""
    said = run([fresh / "bin/inspector", "watch", "1"], tmp_path, status=2)
    assert said == "inspector: watch needs textual, which is not installed: pip install 'ranklens[watch]'\n"
    source, program = tmp_path / "thread_local.c", tmp_path / "thread_local.so"
    source.write_text("static _Thread_local int count;\nint next(void) { return ++count; }\n")
    run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-ftls-model=initial-exec", source, "-o", program])
    shown = run([fresh / "bin/inspector", "audit", program], tmp_path)
    assert "capstone is not installed" in shown and "pip install 'ranklens[audit]'" in shown
