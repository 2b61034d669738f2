// Functions of C linkage in C++: all ranks but the last wait in them for a message, the last one runs in them.
#include <cstdio>
#include <mpi.h>

static volatile int spinning = 1;

extern "C" {
__attribute__((noinline)) void spin() {
    std::puts("ready");
    std::fflush(stdout);
    while (spinning)
        ;
}

__attribute__((noinline)) void stay(int rank, int size) {
    int word = 0;
    if (rank != size - 1) {
        MPI_Send(&rank, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int other = 0; other < size - 1; other++)
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    spin();
}
}

int main(int argc, char **argv) {
    int rank = 0, size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    stay(rank, size);
    MPI_Finalize();
    return 0;
}
