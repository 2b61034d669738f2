"""`inspector payload --what-if`, of a program that has known numbers of pages of each kind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartJob, built

PAGE = 4096
SAME, WRITTEN, EQUAL, EMPTY = 64, 16, 8, 32  # pages: as in the original, each rank's own, equal on all, zero
PROGRAM = f"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
_Alignas({PAGE}) char same[{SAME} * {PAGE}] = {{[0 ... {SAME} * {PAGE} - 1] = 7}};
_Alignas({PAGE}) char written[{WRITTEN} * {PAGE}] = {{1}};
_Alignas({PAGE}) char equal[{EQUAL} * {PAGE}] = {{1}};
_Alignas({PAGE}) char empty[{EMPTY} * {PAGE}];
int main(int argc, char **argv) {{
    int rank, nothing;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(written, rank + 2, sizeof written);
    memset(equal, 99, sizeof equal);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ready %d\\n", same[5] + empty[6]);
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}}
"""


def payload(pid: int, *options: str) -> list[dict[str, Any]]:
    command = [str(built("inspector")), "payload", str(pid), "--json", *options]
    found: list[dict[str, Any]] = json.loads(
        subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    )
    return found


@pytest.mark.parametrize("share", [False, True])
def test_savings(share: bool, start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "pages.c", tmp_path / "pages"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 3, *(["--share-code"] if share else []), program)
    job.wait_for("ready")
    now = {one["rank"]: one for one in payload(job.pid)}
    found = payload(job.pid, "--what-if", "--bandwidth", "1GB/s", "--latency", "10us")
    assert [one["rank"] for one in found] == [0, 1, 2]
    for one in found:
        sizes, rank = one["bytes"], now[one["rank"]]
        assert sizes["now"] == rank["total"]
        assert sizes["shared_code"] == rank["total"] - rank["code"] - rank["rodata"]
        assert sizes["used_stack"] == rank["total"] - rank["stack_unused"]
        assert sizes["differing"] == sizes["now"] - one["pages"]["zero"] - one["pages"]["original"]
        assert sizes["smallest"] == sizes["differing"] - rank["stack_unused"]
        constants = rank["code"] + rank["rodata"]  # as in the original, where they are sent at all
        assert 0 <= one["pages"]["original"] - SAME * PAGE - constants < 4 * PAGE
        assert one["pages"]["zero"] >= EMPTY * PAGE
        # Rewritten pointers make a page each rank's own, and leave it the original's.
        rewritten = rank["relro"] + PAGE
        assert -rewritten <= one["pages"]["common"] - one["pages"]["original"] - EQUAL * PAGE < 40 * PAGE
        assert sizes["smallest"] >= (WRITTEN + EQUAL) * PAGE
        assert one["seconds"]["now"] == pytest.approx(10e-6 + sizes["now"] / 1e9)


@pytest.mark.parametrize("words", [("--bandwidth", "much"), ("--bandwidth", "0GB/s"), ("--latency", "soon")])
def test_rates_that_make_no_sense(words: tuple[str, str], start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "pages.c", tmp_path / "pages"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 2, program)
    job.wait_for("ready")
    command = [str(built("inspector")), "payload", str(job.pid), "--what-if", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and repr(words[1]) in done.stderr and "Traceback" not in done.stderr
