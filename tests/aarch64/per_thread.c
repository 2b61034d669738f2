/* Thread-local variables: GCC for AArch64 leaves their places out of debug information. Ranks but the first wait. */
#include <mpi.h>
#include <stdio.h>

__thread int before[50];
__thread int external = 4;
static __thread long own = 7;

int main(void) {
    int rank, found;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    external += 100 * rank, own += 10 * rank, before[0] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d %p %d %p %ld\n", rank, (void *)&external, external, (void *)&own, own);
    fflush(stdout);
    if (rank)
        MPI_Recv(&found, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (1)
        MPI_Iprobe(0, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}
