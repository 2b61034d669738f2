"""The embedded runtime, built with the compiler's sanitizers, runs MPI programs without a finding.

A planted overflow and a planted race, each in what a program hands to MPI, show that a finding would be seen.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mpi.test_against_mpich import build as compiled_for_rankrun
from tests.support.running import ROOT
from tests.support.sharing import Shared

pytestmark = pytest.mark.timeout(900)  # seconds: the runtime is built anew, and slowed by what watches it

MPI_PROGRAMS = ROOT / "tests" / "mpi" / "programs"
JACOBI = ROOT / "tests" / "programs" / "jacobi3d" / "jacobi3d.c"
# Leaks are not looked for: the search would have to know the stacks of suspended ranks.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
# libc's dates are guarded by a lock inside libc, which the sanitizer does not see.
NOT_RACES = "race:tzset_internal\n"

OVERFLOW = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, eight[8] = {0}, *four = malloc(4 * sizeof(int));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Send(eight, 8, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(four, 8, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
"""
RACE = """
#include <mpi.h>
int main(int argc, char **argv) {
    static int shared[1000]; /* by both ranks: run with --method none */
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 1000; i++) /* each with itself, so that nothing orders the two */
        MPI_Sendrecv_replace(shared, 1000, MPI_INT, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
"""


@dataclass(frozen=True)
class Runtime:
    """A build of the runtime of its own."""

    folder: Path

    def compile(self, source: Path, program: Path) -> Path:
        compiler = self.folder / "bin" / "rankcc"
        subprocess.run([compiler, "-g", "-O1", source, "-o", program, "-lm"], check=True, timeout=120)
        return program

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "bin" / "rankrun"), *map(str, words)]
        suppressions = self.folder / "suppressions"
        suppressions.write_text(NOT_RACES)
        environment = {**os.environ, **OPTIONS, "TSAN_OPTIONS": f"suppressions={suppressions}"}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def build(sanitizers: str, folder: Path) -> Runtime:
    command = ["make", "-s", "-C", str(ROOT / "runtime-hooks"), f"OUT={folder}", f"SANITIZE={sanitizers}"]
    subprocess.run(command, check=True, timeout=600)
    return Runtime(folder)


def check_programs(runtime: Runtime, shared: Shared) -> None:
    """The programs are those of tests/mpi, which know no sanitizer: what the runtime gives them is the same in each."""
    for source in [*sorted(MPI_PROGRAMS.glob("*.c")), JACOBI]:
        program = compiled_for_rankrun(source, shared)
        arguments = ("--size", 6, "--iterations", 30) if source == JACOBI else ()
        for elements in (1, 2):
            done = runtime.run("-n", 5, "--pes", elements, program, *arguments)
            assert (done.returncode, done.stderr) == (0, ""), f"{source.name} on {elements}: {done.stderr[:4000]}"
            assert done.stdout


def test_addresses_and_undefined_behaviour(tmp_path: Path, shared: Shared) -> None:
    runtime = build("address,undefined", tmp_path / "runtime")
    check_programs(runtime, shared)
    source = tmp_path / "overflow.c"
    source.write_text(OVERFLOW)
    done = runtime.run("-n", 2, runtime.compile(source, tmp_path / "overflow"))
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr and "MPI_Recv" in done.stderr


def test_undefined_behaviour_with_the_ranks_own_heaps(tmp_path: Path, shared: Shared) -> None:
    """Without the address sanitizer's allocator the runtime's own serves every rank."""
    check_programs(build("undefined", tmp_path / "runtime"), shared)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="a race needs two processors")
def test_threads(tmp_path: Path, shared: Shared) -> None:
    runtime = build("thread", tmp_path / "runtime")
    check_programs(runtime, shared)
    source = tmp_path / "race.c"
    source.write_text(RACE)
    done = runtime.run("-n", 2, "--pes", 2, "--method", "none", runtime.compile(source, tmp_path / "race"))
    assert "ThreadSanitizer: data race" in done.stderr and "MPI_Sendrecv_replace" in done.stderr
