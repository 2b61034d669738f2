/*
 * Rank 1 leaves without MPI_Finalize, in silence; the others go on as soon as there is the file that the argument
 * names. Then rank 0 sends to rank 1 as to one that is there, and nobody can end, as MPI_Finalize waits for all.  With
 * a second argument nobody leaves early, and all end with a status of their own, rank 0 once the file is there.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int here = 11;

static void go_on_without_one(int rank, const char *file, MPI_Comm others) {
    int absent = 1, value[1000] = {0};
    while (absent) {
        absent = access(file, F_OK) != 0;
        MPI_Allreduce(MPI_IN_PLACE, &absent, 1, MPI_INT, MPI_MAX, others);
    }
    if (rank == 0)
        MPI_Send(value, 1000, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sent\n");
    if (rank == 2)
        MPI_Ssend(value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Comm others;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank != 1, rank, &others);
    here += rank;
    if (argc == 2 && rank == 1)
        return 0;
    if (argc == 2)
        go_on_without_one(rank, argv[1], others);
    MPI_Finalize();
    if (rank == 0) {
        printf("finalized\n");
        fflush(stdout);
        while (access(argv[1], F_OK) != 0)
            usleep(1000);
    }
    return 10 * rank;
}
