/*
 * own.c: thread-local variables of a program, of a library that it is linked with (first.c), and of one that each rank
 * loads (second.c, whose path is the argument). Prints what each rank has, then waits for ever.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

_Thread_local int own = 7;
_Thread_local char padding[40];
int *first_here(void);

static __attribute__((noinline)) void hold(int rank) {
    int nothing;
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    void *library = dlopen(argv[1], RTLD_NOW);
    int *(*second_here)(void) = (int *(*)(void))dlsym(library, "second_here");
    own = 100 + rank;
    *first_here() = 200 + rank;
    *second_here() = 300 + rank;
    padding[0] = 'p';
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: %d %d %d\n", rank, own, *first_here(), *second_here());
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    hold(rank);
    MPI_Finalize();
}
