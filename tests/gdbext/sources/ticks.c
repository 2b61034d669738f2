/*
 * ticks.c: every rank calls tick() as often as the argument says, and prints how often it has been called.
 *
 * OWN is what method tls needs before variables that ranks do not share.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef OWN
#define OWN
#endif

OWN long ticks;
OWN double level = 0.25;
struct {
    char letter;
    short numbers[3];
} mixed = {'x', {7, 8, 9}};

__attribute__((noinline)) long tick(int rank) {
    ticks += 1;
    return ticks + rank;
}

__attribute__((noinline)) static void turn(int rank, int size) {
    tick(rank);
    MPI_Sendrecv_replace(&rank, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, size, turns = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    level += rank;
    mixed.numbers[1] = (short)(8 + rank);
    for (int i = 0; i < turns; i++)
        turn(rank, size);
    printf("rank %d ticked %ld\n", rank, ticks);
    MPI_Finalize();
    return 0;
}
