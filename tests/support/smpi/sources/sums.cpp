/* As sums.c, with the function in a namespace. */
#include <cstdio>
#include <mpi.h>
int g_rank = -1, s_counter;
namespace own {
static __attribute__((noinline)) int leaf(int n) {
    s_counter += n;
    return s_counter;
}
} // namespace own
int main(int count, char **words) {
    int me, sum = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    g_rank = me;
    for (int i = 1; i <= 3; i++) {
        int before = s_counter;
        sum += own::leaf(i) - before;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    std::printf("SUM %d %d\n", me, sum);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
}
