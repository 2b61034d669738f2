"""NPB BT-MZ's crash under stock AMPI: a rank's copy of libgfortran gives a rank's block to the C library's free."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, build
from tests.support.running import BIN

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
SOURCE = """\
program reads
  use mpi
  implicit none
  integer :: failed, status, steps
  character(len=64) :: name
  call mpi_init(failed)
  name = 'steps.data'
  open (unit=2, file=name, status='old', iostat=status) ! opens
  read (2, *) steps
  close (2)
  write (*, '(a, i0)') 'STEPS ', steps
  call mpi_finalize(failed)
end program
"""
LINE = next(number for number, line in enumerate(SOURCE.splitlines(), 1) if "! opens" in line)


def run(folder: Path, wish: str) -> subprocess.CompletedProcess[str]:
    (folder / "steps.data").write_text("200\n")
    return subprocess.run(
        ["./prog", f"+vp{RANKS}"],
        cwd=folder,
        env={**os.environ, "RANKDEBUG": wish},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),
    )


@pytest.mark.parametrize("method", COPIES)
def test_the_report_of_the_core_begins_with_what_happened(method: str, tmp_path: Path) -> None:
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("the kernel writes core files elsewhere")
    build(tmp_path, method, "f90", source=SOURCE)
    done = run(tmp_path, "")
    assert "munmap_chunk(): invalid pointer" in done.stderr
    (core,) = tmp_path.glob("core*")
    command = [str(BIN / "inspector"), "report", str(core), "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    (crash,) = found["crashes"]
    assert (crash["signal"], crash["message"]) == ("SIGABRT", "munmap_chunk(): invalid pointer")
    assert crash["place"] == f"reads at prog.f90:{LINE}"
    assert found["verdict"]["kind"] == "crash"
    assert found["verdict"]["diagnoses"][0] == crash["diagnosis"]["id"] == "foreign-free"
    evidence = crash["diagnosis"]["evidence"]
    assert f"(rank {crash['rank']}'s copy)" in evidence
    assert "free was called from libgfortran.so" in evidence
    assert f"a pointer to rank {crash['rank']}'s heap" in evidence


@pytest.mark.parametrize("method", COPIES)
def test_the_cure_that_it_names_cures_it(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "f90", with_hook=True, source=SOURCE)
    done = run(tmp_path, "malloc")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("STEPS 200\n") == RANKS
