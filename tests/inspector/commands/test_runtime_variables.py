"""Variables that are declared in AMPI's files are apart from the program's, in every part of the inspector."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.inspector.ranks import StartRanks
from tests.support.running import BIN, Job

SOURCE = """
#include <mpi.h>
#include <stdio.h>
int mine;
int same = 3;
# 1 "/opt/charm/src/libs/ck-libs/ampi/ampi_functions.h"
int (*shim)(void) = 0;
int shim_state;
# 7 "/opt/charm/linux/include/pup_c_functions.h"
int pup_state = 1;
# 30 "/opt/charm/src/ck-core/init.C"
int of_charm;
# 30 "/opt/charm/examples/ampi/ring.c"
int of_example;
# 40 "program.c"
int main(int count, char **words) {
    int rank, word;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = of_charm = of_example = shim_state = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    MPI_Recv(&word, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""
OWN = ["mine", "of_example", "same"]
EVERY = sorted([*OWN, "shim", "shim_state", "pup_state", "of_charm"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "program.c").write_text(SOURCE)
    return tmp_path / "program.c"


@pytest.fixture
def job(source: Path, start_ranks: StartRanks) -> Job:
    return start_ranks(source, ranks=2)


def inspect(*words: object) -> Any:
    done = subprocess.run([BIN / "inspector", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in words else done.stdout


def names(found: list[dict[str, Any]]) -> list[str]:
    return sorted(one["name"] for one in found)


def test_they_are_left_out_and_counted(job: Job) -> None:
    assert names(inspect("globals", job.pid, "--json")["globals"]) == OWN
    assert names(inspect("globals", job.pid, "--all", "--json")["globals"]) == EVERY
    assert names(inspect("globals", job.pid, "shim_state", "--json")["globals"]) == ["shim_state"]
    assert names(inspect("globals", job.pid, "s*", "--json")["globals"]) == ["same"]
    shown = inspect("globals", job.pid)
    assert "4 variables of the MPI runtime and the C and C++ libraries are left out, `--all` shows them" in shown
    report = inspect("report", job.pid, "--json")
    assert names(report["globals"]) == OWN and report["apart"] == 4
    assert "4 variables of the MPI runtime" in inspect("report", job.pid)


def test_differences(job: Job) -> None:
    assert names(inspect("why-different", 0, 1, job.pid, "--json")["variables"]) == ["mine", "of_example"]
    found = names(inspect("why-different", 0, 1, job.pid, "--all", "--json")["variables"])
    assert found == ["mine", "of_charm", "of_example", "shim_state"]


def test_the_page(job: Job, tmp_path: Path) -> None:
    inspect("report", job.pid, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "of_example" in page and "shim_state" not in page and "4 variables of the MPI runtime" in page


def test_the_audit(source: Path, tmp_path: Path, rankcc: Path) -> None:
    program = tmp_path / "audited"
    subprocess.run([rankcc, "-g", source, "-o", program], check=True, timeout=60)
    audit = inspect("audit", program, "--json")
    assert audit["apart"] == 4 and sum(one["count"] for one in audit["variables"]) == 3
    assert "4 variables of the MPI runtime and the C++ library are left out" in inspect("audit", program)


def test_the_cxx_library_s_own(tmp_path: Path) -> None:
    """Each unit that includes <iostream> has an object that begins the streams."""
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text("#include <iostream>\nint mine;\nint main() { std::cout << mine++; }\n")
    subprocess.run(["g++", "-g", source, "-o", program], check=True, timeout=60)
    found = inspect("audit", program, "--variables", "--json")
    assert names(found["listed"]) == ["mine"] and found["apart"] == 1
