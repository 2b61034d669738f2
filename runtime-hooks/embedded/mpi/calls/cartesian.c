/*
 * cartesian.c: communicators whose ranks stand in a grid, in row-major order (MPI-3.1, 7.5).
 *
 * Ranks are never reordered, which the standard allows.
 */
#include "mpi/calls/communicator_create.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/cartesian_topology.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/error.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/publish.h"
#include "mpi/objects/rank_state.h"
#include "ranks/scheduler.h"

#include <limits.h>
#include <stdlib.h>

/* How many ranks the grid has; 0 where no communicator has as many. */
static int grid_size(int count, const int sizes[], int most) {
    long total = 1;
    for (int i = 0; i < count; i++)
        if (sizes[i] <= 0 || (total *= sizes[i]) > most)
            return 0;
    return (int)total;
}

/* Distance of two ranks that are neighbors along an axis. */
static int stride(const struct cartesian_topology *grid, int axis) {
    int product = 1;
    for (int i = axis + 1; i < grid->count; i++)
        product *= grid->axes[i].size;
    return product;
}

static int coordinate(const struct cartesian_topology *grid, int rank, int axis) {
    return rank / stride(grid, axis) % grid->axes[axis].size;
}

/* The communicator of a handle if it has a grid; else NULL, with *code set by its error handler. */
static const struct communicator *get(struct mpi_rank *self, enum call call, MPI_Comm comm, int *code) {
    struct communicator *communicator = comm_get(self, comm);
    if (communicator && communicator->cartesian)
        return communicator;
    *code = mpi_fail(self, communicator, call, communicator ? MPI_ERR_TOPOLOGY : MPI_ERR_COMM);
    return NULL;
}

int MPI_Cart_create(MPI_Comm comm, int count, const int sizes[], const int periods[], int reorder, MPI_Comm *cart) {
    (void)reorder;
    struct mpi_rank *self = mpi_self(CALL_Cart_create);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Cart_create, MPI_ERR_COMM);
    int members = count < 0 ? 0 : grid_size(count, sizes, comm_size(communicator));
    if (!members)
        return mpi_fail(self, communicator, CALL_Cart_create, MPI_ERR_DIMS);
    int color = communicator->rank < members ? 0 : MPI_UNDEFINED;
    int code = comm_split(self, communicator, CALL_Cart_create, color, communicator->rank, cart);
    if (code)
        return mpi_fail(self, communicator, CALL_Cart_create, code);
    if (*cart == MPI_COMM_NULL)
        return MPI_SUCCESS;
    struct cartesian_topology *grid = comm_get(self, *cart)->cartesian = cartesian_topology_new(count);
    for (int i = 0; i < count; i++)
        grid->axes[i] = (struct axis){sizes[i], periods[i] != 0};
    return MPI_SUCCESS;
}

int MPI_Cartdim_get(MPI_Comm comm, int *count) {
    int code;
    const struct communicator *communicator = get(mpi_self(CALL_Cartdim_get), CALL_Cartdim_get, comm, &code);
    if (!communicator)
        return code;
    *count = communicator->cartesian->count;
    return MPI_SUCCESS;
}

int MPI_Cart_get(MPI_Comm comm, int room, int sizes[], int periods[], int coordinates[]) {
    int code;
    const struct communicator *communicator = get(mpi_self(CALL_Cart_get), CALL_Cart_get, comm, &code);
    if (!communicator)
        return code;
    const struct cartesian_topology *grid = communicator->cartesian;
    for (int i = 0; i < grid->count && i < room; i++) {
        sizes[i] = grid->axes[i].size;
        periods[i] = grid->axes[i].is_periodic;
        coordinates[i] = coordinate(grid, communicator->rank, i);
    }
    return MPI_SUCCESS;
}

int MPI_Cart_rank(MPI_Comm comm, const int coordinates[], int *rank) {
    struct mpi_rank *self = mpi_self(CALL_Cart_rank);
    int code;
    const struct communicator *communicator = get(self, CALL_Cart_rank, comm, &code);
    if (!communicator)
        return code;
    const struct cartesian_topology *grid = communicator->cartesian;
    *rank = 0;
    for (int i = 0; i < grid->count; i++) {
        const struct axis *axis = &grid->axes[i];
        int place = coordinates[i];
        if (axis->is_periodic)
            place = (place % axis->size + axis->size) % axis->size;
        else if (place < 0 || place >= axis->size)
            return mpi_fail(self, comm_get(self, comm), CALL_Cart_rank, MPI_ERR_ARG);
        *rank += place * stride(grid, i);
    }
    return MPI_SUCCESS;
}

int MPI_Cart_coords(MPI_Comm comm, int rank, int room, int coordinates[]) {
    struct mpi_rank *self = mpi_self(CALL_Cart_coords);
    int code;
    const struct communicator *communicator = get(self, CALL_Cart_coords, comm, &code);
    if (!communicator)
        return code;
    if (rank < 0 || rank >= comm_size(communicator))
        return mpi_fail(self, comm_get(self, comm), CALL_Cart_coords, MPI_ERR_RANK);
    for (int i = 0; i < communicator->cartesian->count && i < room; i++)
        coordinates[i] = coordinate(communicator->cartesian, rank, i);
    return MPI_SUCCESS;
}

/* The rank so many places along the axis; MPI_PROC_NULL beyond the grid's end. */
static int neighbor(const struct communicator *comm, int axis, long distance) {
    const struct cartesian_topology *grid = comm->cartesian;
    long size = grid->axes[axis].size;
    int here = coordinate(grid, comm->rank, axis);
    long place = here + distance;
    if (grid->axes[axis].is_periodic)
        place = (place % size + size) % size;
    else if (place < 0 || place >= size)
        return MPI_PROC_NULL;
    return comm->rank + ((int)place - here) * stride(grid, axis);
}

int MPI_Cart_shift(MPI_Comm comm, int axis, int distance, int *source, int *dest) {
    struct mpi_rank *self = mpi_self(CALL_Cart_shift);
    int code;
    const struct communicator *communicator = get(self, CALL_Cart_shift, comm, &code);
    if (!communicator)
        return code;
    if (axis < 0 || axis >= communicator->cartesian->count)
        return mpi_fail(self, comm_get(self, comm), CALL_Cart_shift, MPI_ERR_DIMS);
    *source = neighbor(communicator, axis, -(long)distance);
    *dest = neighbor(communicator, axis, distance);
    return MPI_SUCCESS;
}

/* Members that differ in the remaining coordinates alone stay together. */
int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *part) {
    struct mpi_rank *self = mpi_self(CALL_Cart_sub);
    int code;
    const struct communicator *communicator = get(self, CALL_Cart_sub, comm, &code);
    if (!communicator)
        return code;
    const struct cartesian_topology *grid = communicator->cartesian;
    struct cartesian_topology *kept = cartesian_topology_new(grid->count);
    int color = 0;
    kept->count = 0;
    for (int i = 0; i < grid->count; i++)
        if (remain[i])
            kept->axes[kept->count++] = grid->axes[i];
        else
            color = color * grid->axes[i].size + coordinate(grid, communicator->rank, i);
    code = comm_split(self, comm_get(self, comm), CALL_Cart_sub, color, communicator->rank, part);
    if (code) {
        host_release(kept);
        return mpi_fail(self, comm_get(self, comm), CALL_Cart_sub, code);
    }
    comm_get(self, *part)->cartesian = kept;
    return MPI_SUCCESS;
}

int MPI_Topo_test(MPI_Comm comm, int *status) {
    struct mpi_rank *self = mpi_self(CALL_Topo_test);
    const struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Topo_test, MPI_ERR_COMM);
    *status = communicator->cartesian ? MPI_CART : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* Factors of `total`, none greater than `most`, in falling order: those whose first, then second ... is smallest. */
static bool factorize(int total, int count, int most, int factors[]) {
    if (count == 0)
        return total == 1;
    for (int first = 1; first <= most && first <= total; first++)
        if (total % first == 0) {
            factors[0] = first;
            if (factorize(total / first, count - 1, first, factors + 1))
                return true;
        }
    return false;
}

int MPI_Dims_create(int ranks, int count, int sizes[]) {
    struct mpi_rank *self = mpi_self(CALL_Dims_create);
    int rest = ranks, open = 0;
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0 || (sizes[i] > 0 && rest % sizes[i]))
            return mpi_fail(self, NULL, CALL_Dims_create, MPI_ERR_DIMS);
        rest /= sizes[i] > 0 ? sizes[i] : 1;
        open += sizes[i] == 0;
    }
    if (ranks <= 0 || count < 0 || (open == 0 && rest != 1))
        return mpi_fail(self, NULL, CALL_Dims_create, MPI_ERR_DIMS);
    int *factors = host_allocate(((size_t)open + 1) * sizeof *factors);
    factorize(rest, open, rest, factors);
    for (int i = 0, next = 0; i < count; i++)
        if (sizes[i] == 0)
            sizes[i] = factors[next++];
    host_release(factors);
    return MPI_SUCCESS;
}
