"""The embedded runtime's MPI, held against Debian's MPICH: the same programs must print the same lines.

Output of ranks comes in any order, so it is sorted; a program prints only what the MPI standard determines.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.mpich import mpiexec, printed_by_ranks
from tests.support.running import BIN, PROGRAMS, ROOT, StartJob
from tests.support.sharing import Shared

HERE = Path(__file__).resolve().parent / "programs"
HEADERS = ROOT / "runtime-hooks" / "embedded" / "mpi" / "include"
TIMEOUT = 120
STATUS = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    return rank == 1 ? atoi(argv[1]) : 0;
}
"""
# Prints whether each call was refused for its count, and what it left in its arguments.
REFUSED = """
program refused
  use mpi
  implicit none
  integer :: rank, nranks, done, ierror, code, requests(2), indices(2), statuses(MPI_STATUS_SIZE, 2), values(8)
  logical :: flag
  integer, allocatable :: counts(:)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  requests = MPI_REQUEST_NULL
  indices = 77
  done = BEFORE
  call MPI_Waitsome(-1, requests, done, indices, statuses, code)
  call tell('waitsome', code)
  print '(i0,a,2i3)', rank, ' indices', indices
  call MPI_Waitany(-1, requests, done, statuses, code)
  call tell('waitany', code)
  call MPI_Waitall(-1, requests, statuses, code)
  call tell('waitall', code)
  call MPI_Testany(-1, requests, done, flag, statuses, code)
  call tell('testany', code)
  call MPI_Testall(-1, requests, flag, statuses, code)
  call tell('testall', code)
  allocate (counts(nranks))
  counts = 1
  values = 5
  counts(1) = -1
  call MPI_Reduce_scatter(values, values(5), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  call tell('negative', code)
  ONE_TOO_MANY
  print '(i0,a,8i2)', rank, ' values', values
  counts = 1
  call MPI_Reduce_scatter(values, values(5), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  print '(i0,a,i4,l2)', rank, ' sum', values(5), code == MPI_SUCCESS
  call MPI_Finalize(ierror)
contains
  subroutine tell(call, code)
    character(*), intent(in) :: call
    integer, intent(in) :: code
    integer :: class, ierror
    call MPI_Error_class(code, class, ierror)
    print '(i0,a,l2)', rank, ' ' // call, class == MPI_ERR_COUNT
  end subroutine
end program
"""
# Of four ranks; as an int the sum would be three.
OVERFLOWS = """counts = [huge(counts), huge(counts), 4, 1]
  call MPI_Reduce_scatter(values, values(5), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  call tell('more than an int counts', code)
"""
FORTRAN = ("rankfort", "mpifort.mpich")
COMPILERS = {".c": ("rankcc", "mpicc.mpich"), ".cpp": ("rankcxx", "mpicxx.mpich"), ".f90": FORTRAN, ".f": FORTRAN}


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT)
    if check and done.returncode:
        pytest.fail(f"{' '.join(words)}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


def build(source: Path, shared: Shared, *options: str) -> Path:
    """The program for the embedded runtime."""
    compiler, _ = COMPILERS[source.suffix]
    return shared.compiled([BIN / compiler, *options, "-g", "-O1", source, "-lm"], f"{source.stem}.rank")


def build_native(source: Path, shared: Shared) -> Path:
    """The program for MPICH."""
    _, compiler = COMPILERS[source.suffix]
    # MPICH's module lacks interfaces for choice buffers.
    options = ["-fallow-argument-mismatch"] if COMPILERS[source.suffix] is FORTRAN else []
    return shared.compiled([compiler, "-g", "-O1", *options, source, "-lm"], f"{source.stem}.mpich")


def mpich_lines(ranks: int, source: Path, shared: Shared) -> list[str]:
    """What the ranks print under MPICH, each to a file of its own: mpiexec would cut lines where its reads end."""
    program = build_native(source, shared)

    folder = shared.made(
        f"{program.parent.name}.{ranks}", lambda place: run(*printed_by_ranks(ranks, program, place)[0])
    )
    _, files = printed_by_ranks(ranks, program, folder)
    return sorted(line for file in files for line in file.read_text().splitlines())


@pytest.mark.parametrize("spread", [("--pes", 1), ("--pes", 2), ("--procs", 2)], ids=str)
@pytest.mark.parametrize("ranks", [2, 4, 5])
@pytest.mark.parametrize("name", sorted(path.name for path in HERE.iterdir()))
def test_same_output(name: str, ranks: int, spread: tuple[str, int], shared: Shared) -> None:
    expected = mpich_lines(ranks, HERE / name, shared)
    assert len(expected) >= ranks
    printed = run(BIN / "rankrun", "-n", ranks, *spread, build(HERE / name, shared)).stdout
    assert sorted(printed.splitlines()) == expected


def test_same_residual(shared: Shared) -> None:
    source = PROGRAMS / "jacobi3d" / "jacobi3d.c"
    ours, theirs = build(source, shared), build_native(source, shared)
    options = ("--size", 8, "--iterations", 40)
    expected = run(*mpiexec(), "-n", 8, theirs, *options).stdout
    assert "residual" in expected
    assert run(BIN / "rankrun", "-n", 8, ours, *options).stdout == expected


@pytest.mark.parametrize("spread", [("--pes", 1), ("--procs", 2)], ids=str)
@pytest.mark.parametrize("value", [-1, 256, 511])
def test_same_exit_status(value: int, spread: tuple[str, int], shared: Shared) -> None:
    """A main's result is a process's exit status: eight bits of it."""
    source = shared.made("status", lambda folder: (folder / "status.c").write_text(STATUS)) / "status.c"
    ours, theirs = build(source, shared), build_native(source, shared)
    expected = run(*mpiexec(), "-n", 2, theirs, value, check=False).returncode
    assert expected == value & 0xFF
    assert run(BIN / "rankrun", "-n", 2, *spread, ours, value, check=False).returncode == expected


def refused(folder: Path, before: int, overflows: str) -> Path:
    source = folder / "refused.f90"
    source.write_text(REFUSED.replace("BEFORE", str(before)).replace("ONE_TOO_MANY", overflows))
    return source


@pytest.mark.parametrize("spread", [("--pes", 1), ("--procs", 2)], ids=str)
def test_same_refusals(spread: tuple[str, int], shared: Shared) -> None:
    """The oracle says what is refused; what it does not survive, or does as well, is asked of ours alone."""
    source = shared.made("refused", lambda folder: refused(folder, 0, "")) / "refused.f90"
    expected = mpich_lines(4, source, shared)
    assert "2 waitsome T" in expected and "2 negative T" in expected and "2 sum  20 T" in expected
    own = shared.made("refused more", lambda folder: refused(folder, 1000, OVERFLOWS)) / "refused.f90"
    printed = run(BIN / "rankrun", "-n", 4, *spread, build(own, shared)).stdout.splitlines()
    more = [line for line in printed if "more than an int" in line]
    assert sorted(more) == [f"{rank} more than an int counts T" for rank in range(4)]
    assert sorted(line for line in printed if line not in more) == expected


def test_unknown_function_fails_at_link_time(tmp_path: Path) -> None:
    source = tmp_path / "window.c"
    source.write_text("int MPI_Win_fence(int, int);\nint main(void) { return MPI_Win_fence(0, 0); }\n")
    done = run(BIN / "rankcc", source, "-o", tmp_path / "window", check=False)
    assert done.returncode != 0
    assert "MPI_Win_fence" in done.stderr


PAIR = "MPI_Datatype pair; int two[2] = {0}; MPI_Type_contiguous(2, MPI_INT, &pair);"
UNCOMMITTED = "invalid datatype, or one that was not committed"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);", "rank 1: MPI_Send: invalid rank"),
        ("MPI_Bcast(&rank, 1, MPI_INT, 7, MPI_COMM_WORLD);", "rank 1: MPI_Bcast: invalid root"),
        ("MPI_Abort(MPI_COMM_WORLD, 9);", "rank 1: MPI_Abort"),
        (f"{PAIR} MPI_Send(two, 1, pair, 0, 0, MPI_COMM_WORLD);", f"rank 1: MPI_Send: {UNCOMMITTED}"),
        (f"{PAIR} MPI_Bcast(two, 1, pair, 1, MPI_COMM_WORLD);", f"rank 1: MPI_Bcast: {UNCOMMITTED}"),
    ],
)
def test_errors_name_rank_and_call(statement: str, message: str, tmp_path: Path) -> None:
    source = tmp_path / "error.c"
    source.write_text(
        "#include <mpi.h>\nint main(int argc, char **argv) { int rank; MPI_Init(&argc, &argv);\n"
        f"MPI_Comm_rank(MPI_COMM_WORLD, &rank); if (rank == 1) {{ {statement} }}\nMPI_Finalize(); return 0; }}\n"
    )
    run(BIN / "rankcc", source, "-o", tmp_path / "error")
    done = run(BIN / "rankrun", "-n", 2, tmp_path / "error", check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_fortran_constants_are_those_of_c() -> None:
    """Every integer constant of mpif.h that mpi.h has too is the same number, lengths of strings but for the NUL."""
    header = (HEADERS / "mpi.h").read_text()
    c = dict(re.findall(r"^#define (MPI_\w+) \(?(?:\(MPI_\w+\))?\(?(-?\d+)\)*$", header, re.M))
    fortran = dict(re.findall(r"^ +parameter \((MPI_\w+)=(-?\d+)\)$", (HEADERS / "mpif_constants.h").read_text(), re.M))
    shared = c.keys() & fortran.keys()
    assert len(shared) > 100
    for name in shared:
        assert int(fortran[name]) == int(c[name]) - name.startswith("MPI_MAX_"), name


def test_programs_call_every_function() -> None:
    called = "".join(path.read_text() for path in [*HERE.glob("*.c"), Path(__file__)])
    declared = re.findall(r"^(?:int|double) (MPI_\w+)\(", (HEADERS / "mpi.h").read_text(), re.M)
    symbols = run("nm", "-D", "--defined-only", ROOT / "build" / "runtime" / "lib" / "librankmpi.so").stdout
    assert sorted(declared) == sorted(re.findall(r" T (MPI_\w+)$", symbols, re.M))
    assert [name for name in declared if f"{name}(" not in called] == []


def test_deadlock_names_each_call(start_job: StartJob, tmp_path: Path) -> None:
    """What a rank waits for is published as the communicator's members know it."""
    source = tmp_path / "deadlock.c"
    source.write_text(
        "#include <mpi.h>\nint main(int argc, char **argv) { int rank, value; MPI_Init(&argc, &argv);\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "else MPI_Barrier(MPI_COMM_WORLD);\nMPI_Finalize(); return 0; }\n"
    )
    run(BIN / "rankcc", source, "-o", tmp_path / "deadlock")
    # Its report goes to standard error, which the shell joins to the output that the job is read by.
    job = start_job("sh", "-c", 'exec "$0" -n 2 "$1" 2>&1', BIN / "rankrun", tmp_path / "deadlock")
    assert "peer 1, tag 7" in job.wait_for("rank 0: MPI_Recv")
    job.wait_for("rank 1: MPI_Barrier")
