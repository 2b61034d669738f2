/*
 * grid.h: how the ranks of a communicator stand in a grid.
 */
#ifndef RANK_MPI_GRID_H
#define RANK_MPI_GRID_H

#include <stdbool.h>

/* One direction of a grid of ranks. */
struct axis {
    int size;
    bool is_periodic;
};

struct cartesian {
    int count;
    struct axis axes[];
};

struct cartesian *cartesian_new(int count);
struct cartesian *cartesian_copy(const struct cartesian *grid); /* NULL of NULL */

#endif
