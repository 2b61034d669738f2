// inlined.cpp: every rank calls a function that the compiler has put into its caller; built with -O1.
#include <cstdio>
#include <mpi.h>
static volatile int sink;
static inline __attribute__((always_inline)) int twice(int x) {
    sink = x;
    return sink + x;
}
__attribute__((noinline)) int work(int rank) {
    sink = 1;
    int a = twice(rank);
    int b = twice(a);
    return a + b;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int sum = 0;
    for (int turn = 0; turn < 3; turn++) {
        sum += work(rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    std::printf("%d\n", sum);
    MPI_Finalize();
}
