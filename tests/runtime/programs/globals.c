/* Prints what a rank sees of its own globals after all ranks have changed theirs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int global = 5;
static int file_static = 7;
int *pointer = &global;
static int *block; /* allocated before main, holds a pointer to a global */
static int table[1000];
int (*function)(int);

__attribute__((constructor)) static void construct(void) {
    int **allocated = malloc(64);
    allocated[0] = &global;
    block = (int *)allocated;
}

static int count(int by) {
    static int function_static = 100;
    function_static += by;
    return function_static;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    function = count;
    global += rank;
    file_static *= rank + 1;
    table[999] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    int counted = function(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    counted = function(rank);
    printf("%d: %d %d %d %d %d %d\n", rank, global, *pointer, **(int **)block, file_static, counted, table[999]);
    if (argc == 1)
        free(block);
    MPI_Finalize();
    return argc > 1 && rank == atoi(argv[1]) ? 3 : 0;
}
