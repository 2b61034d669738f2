/*
 * grid.c: grids as objects; cartesian.c has the calls.
 */
#include "mpi/objects/grid.h"
#include "mpi/objects/library_memory.h"

struct cartesian *cartesian_new(int count) {
    struct cartesian *grid = host_allocate(sizeof *grid + (size_t)count * sizeof grid->axes[0]);
    grid->count = count;
    return grid;
}

struct cartesian *cartesian_copy(const struct cartesian *grid) {
    if (!grid)
        return NULL;
    struct cartesian *copy = cartesian_new(grid->count);
    for (int i = 0; i < grid->count; i++)
        copy->axes[i] = grid->axes[i];
    return copy;
}
