/* Ranks 1 and 9 wait for each other for ever; all others wait for these two in a barrier. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 || rank == 9)
        MPI_Recv(&value, 1, MPI_INT, 10 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
