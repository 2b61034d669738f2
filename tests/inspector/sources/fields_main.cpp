// Every rank waits for ever once all have assigned their globals.
#include <cstdio>
#include <mpi.h>

namespace geometry {
int depth = -1;
}

void assign(int rank);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, word;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    geometry::depth = 100 + rank;
    assign(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        std::puts("assigned");
        std::fflush(stdout);
    }
    MPI_Recv(&word, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
