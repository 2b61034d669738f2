/* Each rank adds up in a function of its own copy; a skipped instruction would leave another sum. */
#include <mpi.h>
#include <stdio.h>
int g_rank = -1, s_counter;
__attribute__((noinline)) int leaf(int n) {
    s_counter += n;
    return s_counter;
}
int main(int count, char **words) {
    int me, own = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    g_rank = me;
    for (int i = 1; i <= 3; i++) {
        int before = s_counter;
        own += leaf(i) - before;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("SUM %d %d\n", me, own);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
