"""Stock AMPI, untouched, under `-pieglobals`: what is found against the addresses that the program prints itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

CHARM = os.environ.get("CHARM_HOME", "")
AMPICC = str(Path(CHARM, "bin", "ampicc")) if CHARM else shutil.which("ampicc") or ""
pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")

SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int g_rank = -1;
int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  printf("TRUTH %d %p\n", g_rank, (void *)&g_rank);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  int word = 0;
  if (g_rank == 0) sleep(300);
  MPI_Recv(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, dict[int, str]]]:
    """A process of four ranks, and where each says its own `g_rank` is."""
    folder = tmp_path_factory.mktemp("charm")
    Path(folder, "prog.c").write_text(SOURCE)
    build = [AMPICC, "-pieglobals", "-g", "prog.c", "-o", "prog"]
    subprocess.run(build, cwd=folder, check=True, timeout=120, capture_output=True)
    with subprocess.Popen(["./prog", "+vp4"], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            truth: dict[int, str] = {}
            assert process.stdout is not None
            while len(truth) < 4:
                line = process.stdout.readline()
                assert line, "the program has ended"
                said = re.match(r"TRUTH (\d+) (0x[0-9a-f]+)", line)
                if said:
                    truth[int(said[1])] = said[2]
            _wait_until_asleep(process.pid)
            yield process.pid, truth
        finally:
            process.kill()


def _wait_until_asleep(pid: int) -> None:
    """Until rank 0 is in sleep(): behind the barrier, so that every other rank has been switched away from."""
    deadline = time.monotonic() + 30
    while "nanosleep" not in Path(f"/proc/{pid}/wchan").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)


def _run(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=60, check=True).stdout


def test_addresses_belong_to_the_ranks_that_print_them(job: tuple[int, dict[int, str]]) -> None:
    pid, truth = job
    for rank, address in truth.items():
        found = _run("pieglobalsfind", "--pid", str(pid), address)
        assert f"rank {rank} " in found
        assert "g_rank+0x0" in found


def test_the_rank_in_sleep_is_the_running_one(job: tuple[int, dict[int, str]]) -> None:
    rows = _run("inspector", "ranks", str(job[0])).splitlines()
    assert any(re.match(r"0\s+running", one) for one in rows)
    assert any(re.match(r"1-3\s+ready", one) for one in rows)


def test_stacks_of_waiting_ranks(job: tuple[int, dict[int, str]]) -> None:
    """All three are in the program's one MPI_Recv, below the program's main function as AMPI names it."""
    found = json.loads(_run("inspector", "stacks", str(job[0]), "--json"))
    (stack,) = found["stacks"]
    assert stack["ranks"] == "1-3"
    functions = [call["function"] for call in stack["calls"]]
    assert functions[-2:] == ["AMPI_Main", "MPI_Recv"]
    line = next(number for number, text in enumerate(SOURCE.splitlines(), 1) if "MPI_Recv" in text)
    assert (Path(stack["calls"][-2]["file"]).name, stack["calls"][-2]["line"]) == ("prog.c", line)
    assert [one["ranks"] for one in found["missing"]] == ["0"]


def test_gdb_sees_every_rank(job: tuple[int, dict[int, str]]) -> None:
    command = ["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(job[0])]
    for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", "rank print g_rank", "rank 2", "bt", "rank tree"):
        command += ["-ex", one]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL).stdout
    assert all(f"\n{rank}: {rank}\n" in said for rank in range(4)), said
    assert re.search(r"^#\d+ +MPI_Recv .*\n#\d+ +0x[0-9a-f]+ in AMPI_Main \(.*\) at prog\.c:\d+$", said, re.MULTILINE)
    assert re.search(r"AMPI_Main at prog\.c:\d+(,\d+)*  \[0-3\]", said)
