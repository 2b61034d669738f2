/*
 * hold.c: see hold.h.
 *
 * The last rank hears from every other rank before it says "holding", and then lets them run on to the call in which
 * they wait.
 */
#include "hold.h"

#include <mpi.h>
#include <stdio.h>

enum { TAG_ARRIVED = 71, TAG_NEVER_SENT = 72, TURNS_FOR_OTHERS = 16 };

#ifndef HOLDING /* or what keeps the code of a function the same, whatever MPI's header says */
#define HOLDING
#endif

static volatile int held = 1;

static void hear_from_all(int size) {
    for (int heard = 0; heard < size - 1; heard++) {
        int from = -1;
        MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, TAG_ARRIVED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int turn = 0; turn < TURNS_FOR_OTHERS; turn++) {
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_NEVER_SENT, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

__attribute__((noinline)) void hold_running(void) {
    while (held) { /* held here */
    }
}

__attribute__((noinline)) void hold_blocked(int rank, int size) {
    int word = -1;
    MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, TAG_NEVER_SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d was sent %d, which nobody sends\n", rank, word);
}

HOLDING void hold(int rank, int size) {
    if (rank != size - 1) {
        MPI_Send(&rank, 1, MPI_INT, size - 1, TAG_ARRIVED, MPI_COMM_WORLD);
        hold_blocked(rank, size);
    } else {
        hear_from_all(size);
        puts("holding");
        fflush(stdout);
        hold_running();
    }
    printf("rank %d was let go\n", rank);
}
