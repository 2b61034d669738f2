/* ring.c: ranks 0, 1 and 2 wait for one another in a ring, rank 3 for rank 0, 4 for any, 5 and 6 are in a barrier. */
#include <mpi.h>
#include <stdio.h>

int own, common_value = 5;
static int halves;

static void receive(int from) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    static const int of[] = {1, 2, 0, 0, MPI_ANY_SOURCE};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own = 100 + rank;
    halves = rank / 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        puts("ready");
        fflush(stdout);
    }
    if (rank < 5)
        receive(of[rank]);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
