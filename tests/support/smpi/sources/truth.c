/* Each rank says where its variables are; rank 0 sleeps for good once all others wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int g_rank = -1;
static int s_rank;
static __thread int t_rank;
static int below(int level, int me) {
    int got = 0;
    if (level > 0)
        return below(level - 1, me) + 1;
    if (me == 0) {
        sleep(1); /* of the simulated time: all others wait meanwhile */
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Recv(&got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}
int main(int count, char **words) {
    int me;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    g_rank = me;
    s_rank = 1000 + me;
    t_rank = 2000 + me;
    printf("TRUTH %d g_rank %p %d\n", me, (void *)&g_rank, g_rank);
    printf("TRUTH %d s_rank %p %d\n", me, (void *)&s_rank, s_rank);
    printf("TRUTH %d t_rank %p %d\n", me, (void *)&t_rank, t_rank);
    printf("TRUTH %d stack %p 0\n", me, (void *)&me);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    count = below(2, me);
    MPI_Finalize();
    return count;
}
