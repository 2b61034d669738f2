/* cartesian.c: communicators whose ranks stand in a grid; prints what MPI defines where ranks are not reordered. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;

static void dimensions(int ranks, int count, int first) {
    int sizes[4] = {first};
    MPI_Dims_create(ranks, count, sizes);
    printf("%d %d in %d, first %d: %d %d %d\n", rank, ranks, count, first, sizes[0], sizes[1], sizes[2]);
}

static void neighbors(MPI_Comm grid, int count) {
    int source, dest;
    for (int axis = 0; axis < count; axis++)
        for (int distance = -2; distance <= 3; distance++) {
            MPI_Cart_shift(grid, axis, distance, &source, &dest);
            printf("%d along %d by %d: %d %d\n", rank, axis, distance, source, dest);
        }
}

static void describe(const char *name, MPI_Comm grid) {
    int count, sizes[3] = {0}, periods[3] = {0}, place[3] = {0}, again[3] = {0}, found, members, status;
    MPI_Topo_test(grid, &status);
    MPI_Cartdim_get(grid, &count);
    MPI_Cart_get(grid, 3, sizes, periods, place);
    MPI_Comm_size(grid, &members);
    MPI_Cart_rank(grid, place, &found);
    MPI_Cart_coords(grid, found, 3, again);
    printf("%d %s: %d of %d, %d axes %d %d %d, periods %d %d %d, at %d %d %d, rank %d, same %d\n", rank, name,
           status == MPI_CART, members, count, sizes[0], sizes[1], sizes[2], periods[0], periods[1], periods[2],
           place[0], place[1], place[2], found, !memcmp(place, again, sizeof place));
    neighbors(grid, count);
}

/* Two columns; with an odd number of ranks one is left over. */
static void columns(void) {
    int sizes[2] = {size / 2, 2}, periods[2] = {0, 1}, outside[2] = {0, -3}, found, keep[2] = {0, 1}, status, sum;
    MPI_Comm grid, same, row;
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
    if (grid == MPI_COMM_NULL) {
        printf("%d is left over\n", rank);
        return;
    }
    describe("columns", grid);
    MPI_Cart_rank(grid, outside, &found);
    printf("%d wraps to %d\n", rank, found);
    MPI_Comm_dup(grid, &same);
    describe("again", same);
    MPI_Cart_sub(grid, keep, &row);
    describe("row", row);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, row);
    printf("%d row's sum %d\n", rank, sum);
    MPI_Topo_test(MPI_COMM_WORLD, &status);
    printf("%d world in a grid: %d\n", rank, status != MPI_UNDEFINED);
    MPI_Comm_free(&row);
    MPI_Comm_free(&same);
    MPI_Comm_free(&grid);
}

static void ring(void) {
    int periods[1] = {1};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 0, &grid);
    describe("ring", grid);
    MPI_Comm_free(&grid);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    dimensions(size, 2, 0);
    for (int ranks = 1; ranks <= 64; ranks++)
        for (int count = 1; count <= 3; count++)
            dimensions(ranks, count, 0);
    dimensions(24, 3, 2);
    dimensions(7, 2, 7);
    columns();
    ring();
    MPI_Finalize();
    return 0;
}
