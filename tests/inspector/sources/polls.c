/* polls.c: rank 0 waits once, and then polls for ever while nobody else can run: it gives way, and goes on at once. */
#include <mpi.h>
#include <stdio.h>

static int word;

__attribute__((noinline)) static void wait_once(void) {
    MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
}

__attribute__((noinline)) static void poll_for_ever(void) {
    for (int flag = 0; !flag;)
        MPI_Iprobe(1, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        wait_once();
        poll_for_ever();
    }
    MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
