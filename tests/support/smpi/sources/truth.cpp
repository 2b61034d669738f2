/* As truth.c; an inline variable is one for all ranks, because the loader keeps one of it. */
#include <cstdio>
#include <mpi.h>
#include <unistd.h>
int g_rank = -1;
inline int common = 4;
namespace own {
static int s_rank;
thread_local int t_rank;
} // namespace own
int main(int count, char **words) {
    int me;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    g_rank = me;
    own::s_rank = 1000 + me;
    own::t_rank = 2000 + me;
    common += me;
    printf("TRUTH %d g_rank %p %d\n", me, (void *)&g_rank, g_rank);
    printf("TRUTH %d own::s_rank %p %d\n", me, (void *)&own::s_rank, own::s_rank);
    printf("TRUTH %d own::t_rank %p %d\n", me, (void *)&own::t_rank, own::t_rank);
    printf("TRUTH %d stack %p 0\n", me, (void *)&me);
    printf("COMMON %p\n", (void *)&common);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
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
