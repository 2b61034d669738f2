/*
 * in_main.c: the last rank prints "ready" and then runs in `main` itself; the others wait in `wait_deep`.
 */
#include <mpi.h>
#include <stdio.h>

volatile long turns;

static int wait_deep(int depth) {
    int word = 0;
    if (depth > 0)
        return wait_deep(depth - 1) + 1;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return word;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < ranks - 1)
        return wait_deep(rank);
    puts("ready");
    fflush(stdout);
    for (;;)
        turns++; /* here */
}
