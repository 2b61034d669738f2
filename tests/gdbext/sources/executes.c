/*
 * executes.c: every rank calls tick(), and the first one then executes the program that is named, in place of the job.
 */
#include <mpi.h>
#include <unistd.h>

long ticks;

__attribute__((noinline)) void tick(void) {
    ticks += 1;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tick();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        execv(argv[1], argv + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    return 1;
}
