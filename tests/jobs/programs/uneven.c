/* Every rank of the first process works, the others hardly do; MPIX_Migrate evens that out. Prints where ranks are. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static volatile double sink;

static void work(long amount) {
    for (long i = 0; i < amount; i++)
        sink += (double)i;
}

int main(int argc, char **argv) {
    int rank, before, after, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPIX_Process(&before, &count);
    work(before == 0 ? 20000000 : 1000);
    MPIX_Migrate(MPI_COMM_WORLD);
    MPIX_Process(&after, &count);
    printf("%d %d %d\n", rank, before, after);
    MPI_Finalize();
    return 0;
}
