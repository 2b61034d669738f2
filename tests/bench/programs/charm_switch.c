/* Ranks of one processing element take turns; rank 0 prints the nanoseconds of a switch, round by round. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **words) {
    int rank, ranks, rounds = 5, turns = 200000;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        for (int turn = 0; turn < turns; turn++)
            AMPI_Yield();
        if (rank == 0)
            printf("SWITCH %.3f\n", (now() - start) / turns / ranks);
    }
    MPI_Finalize();
    return 0;
}
