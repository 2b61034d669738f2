/* Ranks pass messages on in a ring without an end: SimGrid switches them all the time. */
#include <mpi.h>
#include <stdio.h>
int g_rank = -1;
static long turns;
static void pass_on(int me, int size) {
    int word = me;
    MPI_Sendrecv_replace(&word, 1, MPI_INT, (me + 1) % size, 3, (me + size - 1) % size, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    turns++;
}
int main(int count, char **words) {
    int size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (;;) {
        pass_on(g_rank, size);
        if (g_rank == size - 1 && turns == 100) {
            printf("ready\n");
            fflush(stdout);
        }
    }
}
