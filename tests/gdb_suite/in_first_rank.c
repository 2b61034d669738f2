/* in_first_rank.c: what the runtime enters in every program of the suite. Rank 0 runs the program's own main; all other
 * ranks wait in MPI_Recv until it exits. */
#include <mpi.h>

#include <stdlib.h>

#define TAG 71

int main_in_process(int argc, char **argv, char **environment);

__attribute__((used, section(".interp"))) static const char loader[] = "/lib64/ld-linux-x86-64.so.2";

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
    return main_in_process(argc, argv, environment);
}
