/* waits.c: ranks 0 and 2 wait in even(), rank 1 in odd() below deeper(), and the last rank runs in turn(). */
#include <mpi.h>
#include <stdio.h>

static volatile int going = 1;

static void receive(int rank) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void even(int size) {
    receive(size - 1); /* even waits */
}

__attribute__((noinline)) static void odd(int size) {
    receive(size - 1);
}

__attribute__((noinline)) static void deeper(int depth, int size) {
    if (depth > 0)
        deeper(depth - 1, size);
    else
        odd(size);
}

__attribute__((noinline)) static void turn(void) {
    while (going)
        ;
}

int main(int argc, char **argv) {
    int rank, size, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        for (int i = 0; i < 8; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        puts("ready");
        fflush(stdout);
        turn();
    } else if (rank % 2) {
        deeper(2, size);
    } else {
        even(size);
    }
    MPI_Finalize();
    return 0;
}
