#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
extern int own_count;
int own_step(int);
int g_rank = -1;
int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    own_step(10 * g_rank);
    printf("TRUTH %d own_count %p %d\n", g_rank, (void *)&own_count, own_count);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 0) {
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
