/*
 * arguments.c: ranks that wait below functions whose arguments are passed in several ways: rank 0 for 1, 1 for 2, 2 for
 * 3, all in MPI_Recv, and 3 for 0 in MPI_Bcast.  wait_for and relay are in blocked.c, which has no debug information.
 */
#include "blocked.h"
#include <mpi.h>
#include <stdio.h>

/* What it was given is needed afterwards: it is kept where a call changes nothing. */
KEPT static int asked(int first, int peer, int tag) {
    int got = wait_for(first + 1, peer, tag);
    return got + first + peer + tag;
}

/* What it was given is gone by then: only who called it may know. */
KEPT static int forgotten(int first, int peer, int tag) {
    return wait_for(first, peer, tag) + 1;
}

/* relay() jumps to wait_for() with its arguments in another order: what was passed to it was not passed to that. */
KEPT static int relayed(int first, int peer, int tag) {
    return relay(tag, first, peer) + first;
}

KEPT static int broadcast(int count, int root) {
    int words[4] = {0};
    int code = MPI_Bcast(words, count, MPI_INT, root, MPI_COMM_WORLD);
    return code + count + root;
}

int main(int argc, char **argv) {
    int rank, size, got = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        puts("ready");
        fflush(stdout);
    }
    if (rank == 0)
        got = asked(argc + 5, 1, 41);
    else if (rank == 1)
        got = forgotten(17, 2, 42);
    else if (rank == 2)
        got = relayed(argc + 6, 3, 43);
    else
        got = broadcast(2, 0);
    MPI_Finalize();
    return got;
}
