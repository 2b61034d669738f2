"""Collectives that the members of a communicator call differently: the job ends and the sentence names rank and call.

Each program is wrong by the MPI standard; MPICH accepts most of them silently, so the standard is the only oracle here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import BIN
from tests.support.sharing import Shared

from .test_against_mpich import run

# One program for all cases, the first argument says which.  Rank 1 differs from the others.
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CASE(name) if (!strcmp(argv[1], name))
int main(int argc, char **argv) {
    int rank, size, data[64] = {0}, all[256] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm world, comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_dup(comm, &world);
    int odd = rank == 1;
    CASE("bcast root") MPI_Bcast(data, 4, MPI_INT, odd, comm);
    CASE("bcast root of a communicator that is freed") {
        MPI_Bcast(data, 4, MPI_INT, odd, world);
        MPI_Comm_free(&world);
    }
    CASE("bcast more") MPI_Bcast(data, odd ? 5 : 4, MPI_INT, 0, comm);
    CASE("bcast less") MPI_Bcast(data, odd ? 3 : 4, MPI_INT, 0, comm);
    CASE("bcast type") MPI_Bcast(data, 4, odd ? MPI_CHAR : MPI_INT, 0, comm);
    CASE("reduce root") MPI_Reduce(data, all, 4, MPI_INT, MPI_SUM, odd, comm);
    CASE("reduce count") MPI_Reduce(data, all, odd ? 3 : 4, MPI_INT, MPI_SUM, 0, comm);
    CASE("gather root") MPI_Gather(data, 4, MPI_INT, all, 4, MPI_INT, odd, comm);
    CASE("gather count") MPI_Gather(data, odd ? 3 : 4, MPI_INT, all, 4, MPI_INT, 0, comm);
    CASE("scatter root") MPI_Scatter(all, 4, MPI_INT, data, 4, MPI_INT, odd, comm);
    CASE("scatter count") MPI_Scatter(all, 4, MPI_INT, data, odd ? 3 : 4, MPI_INT, 0, comm);
    CASE("allgather count") MPI_Allgather(data, odd ? 3 : 4, MPI_INT, all, odd ? 3 : 4, MPI_INT, comm);
    CASE("alltoall count") MPI_Alltoall(all, odd ? 3 : 4, MPI_INT, data, odd ? 3 : 4, MPI_INT, comm);
    CASE("allreduce count") MPI_Allreduce(data, all, odd ? 3 : 4, MPI_INT, MPI_SUM, comm);
    CASE("scan count") MPI_Scan(data, all, odd ? 3 : 4, MPI_INT, MPI_SUM, comm);
    CASE("other call") {
        if (odd)
            MPI_Bcast(data, 4, MPI_INT, 0, comm);
        else
            MPI_Reduce(data, all, 4, MPI_INT, MPI_SUM, 0, comm);
    }
    CASE("one call more") {
        if (rank == 0)
            MPI_Bcast(data, 4, MPI_INT, 0, world);
    }
    CASE("split and dup") {
        MPI_Comm made;
        if (odd)
            MPI_Comm_split(comm, 0, 0, &made);
        else
            MPI_Comm_dup(comm, &made);
    }
    CASE("errors return") {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        int code = MPI_Bcast(data, odd ? 3 : 4, MPI_INT, 0, comm);
        printf("%d %s\\n", rank, code == MPI_ERR_TRUNCATE ? "truncated" : code ? "other" : "done");
        fflush(stdout);
    }
    printf("%d ends\\n", rank);
    MPI_Finalize();
    return 0;
}
"""
SPREADS = [(2, "--pes", 1), (5, "--procs", 2)]


@pytest.fixture
def program(shared: Shared) -> Path:
    source = shared.made("mismatch", lambda folder: (folder / "mismatch.c").write_text(PROGRAM)) / "mismatch.c"
    return shared.compiled([BIN / "rankcc", "-g", "-O1", source], "mismatch.rank")


@pytest.mark.parametrize("spread", SPREADS, ids=str)
@pytest.mark.parametrize(
    ("case", "call"),
    [
        ("bcast root", "MPI_Bcast with root"),
        ("bcast root of a communicator that is freed", "MPI_Bcast with root"),
        ("bcast more", "rank 1: MPI_Bcast: rank 0 sent 16 bytes, and this rank expects 20"),
        ("bcast less", "rank 1: MPI_Bcast: rank 0 sent 16 bytes, and this rank expects 12"),
        ("bcast type", "rank 1: MPI_Bcast: rank 0 sent 16 bytes, and this rank expects 4"),
        ("reduce root", "rank 0: MPI_Reduce with root 0: rank 1 calls MPI_Reduce with root 1 instead"),
        ("reduce count", "rank 0: MPI_Reduce: rank 1 sent 12 bytes, and this rank expects 16"),
        ("gather root", "rank 1: MPI_Gather with root 1"),
        ("gather count", "rank 0: MPI_Gather: rank 1 sent 12 bytes, and this rank expects 16"),
        ("scatter root", "MPI_Scatter with root"),
        ("scatter count", "rank 1: MPI_Scatter: rank 0 sent 16 bytes, and this rank expects 12"),
        ("allgather count", ": MPI_Allgather: rank "),
        ("alltoall count", ": MPI_Alltoall: rank "),
        ("allreduce count", "rank 0: MPI_Allreduce: rank 1 sent 12 bytes, and this rank expects 16"),
        ("scan count", ": MPI_Scan: rank "),
        ("other call", "rank 1: MPI_Bcast with root 0"),
        ("one call more", "rank 0 called MPI_Bcast with root 0, and this rank did not take part in that"),
        ("split and dup", "MPI_Comm_split"),
    ],
)
def test_mismatch_ends_the_job(case: str, call: str, spread: tuple[int, str, int], program: Path) -> None:
    """Ranks that wait for one another have sent nothing to compare: there the deadlock's report names the calls."""
    done = run(BIN / "rankrun", "--exit-on-deadlock", "-n", *spread, program, case, check=False)
    assert done.returncode not in (0, 139)
    assert call in done.stderr


@pytest.mark.parametrize("spread", [("--pes", 2), ("--procs", 2)], ids=str)
def test_errors_that_return(spread: tuple[str, int], program: Path) -> None:
    """The rank whose call failed is answered with the code; the job goes on."""
    done = run(BIN / "rankrun", "-n", 2, *spread, program, "errors return")
    assert sorted(done.stdout.split("\n")) == ["", "0 done", "0 ends", "1 ends", "1 truncated"]
    assert done.stderr == ""
