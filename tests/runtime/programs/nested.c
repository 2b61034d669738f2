/*
 * nested.c: a nested function of GCC's, whose address is that of a few instructions on the stack.
 */
#include <mpi.h>
#include <stdio.h>

__attribute__((noinline)) static int apply(int (*function)(int), int value) {
    return function(value);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int plus_rank(int value) {
        return value + rank;
    }
    printf("%d\n", apply(plus_rank, 40));
    MPI_Finalize();
    return 0;
}
