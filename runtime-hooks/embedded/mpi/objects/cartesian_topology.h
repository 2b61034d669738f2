/*
 * cartesian_topology.h: how the ranks of a communicator stand in a grid (MPI: Cartesian topology).
 */
#ifndef RANK_MPI_CARTESIAN_TOPOLOGY_H
#define RANK_MPI_CARTESIAN_TOPOLOGY_H

#include <stdbool.h>

/* One direction of a grid of ranks. */
struct axis {
    int size;
    bool is_periodic;
};

struct cartesian_topology {
    int count;
    struct axis axes[];
};

struct cartesian_topology *cartesian_topology_new(int count);
struct cartesian_topology *cartesian_topology_copy(const struct cartesian_topology *grid); /* NULL of NULL */

#endif
