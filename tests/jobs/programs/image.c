/* An image of many pages, few of which a rank writes; each rank goes to the next process once. -DMEGABYTES=N */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef MEGABYTES
#define MEGABYTES 2
#endif

static const volatile char constants[MEGABYTES << 19] = {1, 2, 3};
static volatile char variables[MEGABYTES << 18] = {1, 2, 3};
static volatile char zeros[MEGABYTES << 18];
static const volatile char *pointers[2000] = {constants, variables};
static volatile char *unused = zeros;

int main(int argc, char **argv) {
    int rank, at, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *heap = calloc(1, 300000);
    for (int i = 0; i < 300000; i += 100000)
        heap[i] = (char)rank;
    variables[5000] = (char)(rank + 1);
    zeros[9000] = (char)(rank + 1);
    MPIX_Process(&at, &count);
    MPIX_Migrate_to((at + 1) % count);
    int wrong = heap[100000] != rank || variables[5000] != rank + 1 || zeros[9000] != rank + 1 || pointers[0][2] != 3 ||
                pointers[1] != variables || constants[1] != 2 || unused != zeros;
    printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong;
}
