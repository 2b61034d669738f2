/*
 * Rank 1 leaves without MPI_Finalize, in silence; the others go on as soon as there is the file that the argument
 * names. Then rank 0 sends to rank 1 as to one that is there, and nobody can end, as MPI_Finalize waits for all.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int here = 11;

int main(int argc, char **argv) {
    int rank, absent = 1, value[1000] = {0};
    MPI_Comm others;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank != 1, rank, &others);
    here += rank;
    if (rank == 1)
        return 0;
    while (absent) {
        absent = access(argv[1], F_OK) != 0;
        MPI_Allreduce(MPI_IN_PLACE, &absent, 1, MPI_INT, MPI_MAX, others);
    }
    if (rank == 0)
        MPI_Send(value, 1000, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sent\n");
    if (rank == 2)
        MPI_Ssend(value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
