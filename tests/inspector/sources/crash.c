/* crash.c: the last rank dies, in the way that the first argument names, while the others wait for its message. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

void __libc_free(void *block); /* the C library's own free, whatever the rank's is */

int mine = -1;
const int constant = 7;

__attribute__((noinline)) static int deep(int depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return deep(depth + 1) + room[0];
}

__attribute__((noinline)) static void die(const char *how) {
    int *nowhere = NULL, *block = malloc(100000);
    mine = 7;
    if (strcmp(how, "null") == 0)
        nowhere[1] = mine; /* null */
    else if (strcmp(how, "free") == 0)
        __libc_free(block); /* free */
    else if (strcmp(how, "stack") == 0)
        mine = deep(0);
    else if (strcmp(how, "constant") == 0)
        *(int *)&constant = mine; /* constant */
    else if (strcmp(how, "abort") == 0)
        abort(); /* abort */
}

int main(int argc, char **argv) {
    int rank, size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        die(argc > 1 ? argv[1] : "null");
    MPI_Recv(&word, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return word;
}
