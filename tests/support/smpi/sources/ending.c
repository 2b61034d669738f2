/* The upper half of the ranks ends; rank 0 sleeps for good, the others wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int g_rank = -1;
int main(int count, char **words) {
    int me, size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    g_rank = me;
    printf("TRUTH %d g_rank %p %d\n", me, (void *)&g_rank, g_rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me >= size / 2)
        return 0;
    if (me == 0) {
        sleep(1);
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Recv(&count, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
