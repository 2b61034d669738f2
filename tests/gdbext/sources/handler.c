// A rank that is in a signal's handler: its stack goes on behind the kernel's frame.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

static void handler(int number) {
    printf("in the handler of %d\n", number);
    fflush(stdout);
    for (volatile int spin = 1; spin;)
        ;
}

static int interrupted(int rank) {
    raise(SIGUSR2);
    return rank;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGUSR2, handler);
    int result = interrupted(rank);
    MPI_Finalize();
    return result;
}
