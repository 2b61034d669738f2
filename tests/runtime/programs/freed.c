/* Rank 1 misuses free or realloc as its argument says; the blocks around make the allocator merge and split. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static char *blocks[64];

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 64; i++)
        blocks[i] = memset(malloc(16 + (size_t)i * 40), 255, 16 + (size_t)i * 40);
    for (int i = 0; i < 64; i += 3)
        free(blocks[i]);
    if (rank == 1) {
        if (strcmp(argv[1], "twice") == 0)
            free(blocks[3]);
        else if (strcmp(argv[1], "merged") == 0) /* freed after the block before it, into which it was merged */
            free(blocks[4]), free(blocks[4]);
        else if (strcmp(argv[1], "inside") == 0)
            free(blocks[4] + 16);
        else if (strcmp(argv[1], "odd") == 0)
            free(blocks[4] + 1);
        else if (strcmp(argv[1], "realloc") == 0)
            free(realloc(blocks[6], 100));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 64; i++)
        if (i % 3)
            free(realloc(blocks[i], 5000));
    MPI_Finalize();
    return 0;
}
