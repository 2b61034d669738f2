/* in_first_rank.c: the main of every program of the suite in a rank. Rank 0 runs the program's own main; all other
 * ranks wait in MPI_Recv until it exits. With HOLD in the environment rank 0 stops before, for a debugger. */
#include <mpi.h>

#include <stdlib.h>

#define HOLD "RANKLENS_SUITE_HOLD"
#define TAG 71

int main(int argc, char **argv, char **environment);

static void release(void) {
    int ranks, word = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int rank = 1; rank < ranks; rank++)
        MPI_Send(&word, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
}

int main_in_first_rank(int argc, char **argv, char **environment) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    atexit(release);
    if (getenv(HOLD))
        __asm__ volatile("int3"); // no function of a library, whose source would be the one to list
    return main(argc, argv, environment);
}
