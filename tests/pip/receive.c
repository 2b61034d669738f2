/* A task of Process-in-Process that waits in an MPI library of its own for what nobody sends: odd ones for any rank. */
#include <mpi.h>
#include <pip/pip.h>
#include <stdio.h>

__attribute__((noipa)) static int receive(int source, int tag) {
    int word = 0;
    MPI_Recv(&word, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return word + source + tag;
}

int main(void) {
    int me;
    if (pip_init(&me, NULL, NULL, 0))
        return 2;
    MPI_Init(NULL, NULL); /* a job of one rank: MPI knows nothing of the other tasks */
    dprintf(1, "RECEIVES %d\n", me);
    return receive(me % 2 ? MPI_ANY_SOURCE : 0, 40 + me);
}
