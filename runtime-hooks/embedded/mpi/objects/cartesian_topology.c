/*
 * cartesian_topology.c: makes and copies Cartesian topologies; cartesian.c has the calls.
 */
#include "mpi/objects/cartesian_topology.h"
#include "mpi/objects/library_memory.h"

struct cartesian_topology *cartesian_topology_new(int count) {
    struct cartesian_topology *grid = host_allocate(sizeof *grid + (size_t)count * sizeof grid->axes[0]);
    grid->count = count;
    return grid;
}

struct cartesian_topology *cartesian_topology_copy(const struct cartesian_topology *grid) {
    if (!grid)
        return NULL;
    struct cartesian_topology *copy = cartesian_topology_new(grid->count);
    for (int i = 0; i < grid->count; i++)
        copy->axes[i] = grid->axes[i];
    return copy;
}
