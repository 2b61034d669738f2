"""`make install`: what it puts under a prefix serves users and authors of other runtimes without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.making import TIMEOUT, make
from tests.support.running import PROGRAMS, ROOT, StartJob, built
from tests.support.sharing import Shared

TURNS = 3

pytestmark = pytest.mark.timeout(TIMEOUT)


@pytest.fixture
def prefix(shared: Shared) -> Path:
    return shared.made("prefix", lambda folder: make(ROOT, "install", f"PREFIX={folder}"))


def run(*words: object, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, words)), env={**os.environ, **variables}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def inspected(pid: int, command: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run(built("inspector"), command, pid, "--json"))[command]
    return found


def test_a_runtime_is_built_by_pkg_config(prefix: Path, start_job: StartJob, tmp_path: Path) -> None:
    """Its executable is stripped: readers find the registry by its dynamic symbol, as the flags make it."""
    words = run("pkg-config", "--cflags", "--libs", "rank-debug", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig").split()
    source = ROOT / "tests/abi/programs"
    program, runtime = tmp_path / "program.so", tmp_path / "two_copies"
    run("gcc", "-g", "-shared", "-fPIC", "-o", program, source / "two_copies_program.c")
    run("gcc", "-s", "-o", runtime, source / "two_copies.c", *words, "-ldl")
    assert " rank_debug_registry" in run("nm", "--dynamic", runtime)
    job = start_job(runtime, program, TURNS)
    job.wait_for("ready")
    assert [one["state"] for one in inspected(job.pid, "ranks")] == ["blocked", "blocked"]
    values = {one["name"]: one["groups"] for one in inspected(job.pid, "globals")}
    assert [group["value"] for group in values["my_rank"]] == ["0", "1"]  # type: ignore[attr-defined]


def test_a_program_is_built_and_run(prefix: Path, start_job: StartJob, tmp_path: Path) -> None:
    """By the commands in PREFIX/bin, which are links; no MPI's headers are put into the compiler's way."""
    program = tmp_path / "jacobi3d"
    run(prefix / "bin/rankcc", "-g", "-O1", "-o", program, PROGRAMS / "jacobi3d/jacobi3d.c", "-lm")
    job = start_job(prefix / "bin/rankrun", "-n", 4, program, "--seconds", 60)
    job.wait_for("4 ranks")
    assert len(inspected(job.pid, "ranks")) == 4
    assert str(prefix / "lib/ranklens/lib/librankmpi.so") in Path(f"/proc/{job.pid}/maps").read_text()
    assert not (prefix / "include/mpi.h").exists()


def test_it_is_staged_for_packages(tmp_path: Path) -> None:
    """Under DESTDIR, with no word of it in any file."""
    make(ROOT, "install", "PREFIX=/usr", "LIBDIR=/usr/lib/ranked", f"DESTDIR={tmp_path}")
    assert (tmp_path / "usr/bin/rankrun").resolve() == tmp_path / "usr/lib/ranked/ranklens/bin/rankrun"
    assert "prefix=/usr\nlibdir=/usr/lib/ranked\n" in (tmp_path / "usr/lib/ranked/pkgconfig/rank-debug.pc").read_text()
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or str(tmp_path).encode() not in path.read_bytes(), path
