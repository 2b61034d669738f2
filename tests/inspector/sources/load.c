/*
 * load.c: ranks that compute for times and send messages that they count themselves.
 *
 * Each rank computes STEPS times, rank r for (r + 1) * unit, then sends (r + 1) * 1000 bytes to its neighbour and meets
 * all in a barrier.  In the end it prints, in seconds of the clock between two calls of MPI, how long it computed
 * ("busy R S"), its kernel thread's processor time ("processor R S"), and what it sent ("sent R TO MESSAGES BYTES").
 * `load poll`: ranks ask for a message between two parts of their work, so that they take turns without waiting.
 * `load move`: halfway the odd ranks move to the next process.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEPS = 6, PARTS = 4, MOST = 64, LARGEST = 1000 * MOST };
double unit = 0.01; /* a global, so that methods have something to make private */

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double compute(double seconds) {
    double start = now(CLOCK_MONOTONIC), end;
    do
        end = now(CLOCK_MONOTONIC);
    while (end - start < seconds);
    return end - start;
}

int main(int argc, char **argv) {
    int rank, ranks, found;
    double busy = 0;
    char data[LARGEST], received[LARGEST];
    memset(data, 1, sizeof data);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int polls = argc > 1 && !strcmp(argv[1], "poll"), moves = argc > 1 && !strcmp(argv[1], "move");
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, bytes = 1000 * (rank + 1);
    for (int step = 0; step < STEPS; step++) {
        for (int part = 0; part < PARTS; part++) {
            busy += compute(unit * (rank + 1) / PARTS);
            if (polls)
                MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        }
        MPI_Sendrecv(data, bytes, MPI_CHAR, next, 5, received, LARGEST, MPI_CHAR, before, 5, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
#ifdef MPIX_CAN_MOVE
        if (moves && step == STEPS / 2 && rank % 2)
            MPIX_Migrate_to(1);
#else
        (void)moves;
#endif
    }
    printf("busy %d %.9f\nsent %d %d %d %d\n", rank, busy, rank, next, STEPS, STEPS * bytes);
    printf("processor %d %.9f\n", rank, now(CLOCK_THREAD_CPUTIME_ID));
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(data, 1, MPI_CHAR, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
